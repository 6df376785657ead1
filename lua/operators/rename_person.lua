--- Rename a person for an operator.
--- KEYS[1] user
--- KEYS[2] activity
--- ARGV[1] name
--- @reply not_found
--- @reply ok
--- @include "audit"

local before = redis.call('HGET', user, 'name')
if not before then return {'not_found'} end
if before ~= name then
  redis.call('HSET', user, 'name', name)
  record(activity, 'name_changed_by_operator', '', '', '')
end
return {'ok'}
