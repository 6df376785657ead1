--- Rename a person for an operator.
--- KEYS[1] user
--- KEYS[2] activity
--- KEYS[3] changed
--- ARGV[1] name
--- ARGV[2] member: the person in the lists of the shard
--- @reply not_found
--- @reply ok
--- @include "audit"
--- @include "changed"

local before = redis.call('HGET', user, 'name')
if not before then return {'not_found'} end
if before ~= name then
  note_change(user, changed, member)
  redis.call('HSET', user, 'name', name)
  record(activity, 'name_changed_by_operator', '', '', '')
end
return {'ok'}
