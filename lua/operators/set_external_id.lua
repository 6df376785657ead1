--- Keep the id that an outside directory gives a person, or remove it. The entry of the index is reserved already.
--- KEYS[1] user
--- KEYS[2] audit
--- ARGV[1] external_id: empty for none
--- @reply not_found
--- @reply ok before
--- @durable
--- @include "audit"
--- @include "touch"

local row = redis.call('HMGET', user, 'status', 'external_id')
if not row[1] then return {'not_found'} end
local before = row[2] or ''
if before == external_id then
  touch(user)
  return {'ok', before}
end
if external_id == '' then
  redis.call('HDEL', user, 'external_id')
else
  redis.call('HSET', user, 'external_id', external_id)
end
record(audit, 'external_id_changed_by_operator', '', '', '')
return {'ok', before}
