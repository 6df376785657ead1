--- Cancel the planned deletion of a person. Somebody who was disabled before the plan stays disabled, until the same end.
--- KEYS[1] user
--- KEYS[2] audit
--- @reply not_found
--- @reply none
--- @reply ok
--- @durable
--- @include "audit"
--- @include "touch"

local row = redis.call('HMGET', user, 'status', 'delete_at', 'delete_was', 'delete_until')
if not row[1] then return {'not_found'} end
if not row[2] then
  touch(user)
  return {'none'}
end
redis.call('HDEL', user, 'delete_at', 'delete_was', 'delete_until')
if row[4] then redis.call('HSET', user, 'suspended_until', row[4]) end
if row[3] then
  redis.call('HSET', user, 'status', row[3])
  redis.call('HDEL', user, 'suspended_reason', 'suspended_note')
end
record(audit, 'deletion_cancelled_by_operator', '', '', '')
return {'ok'}
