--- Plan the deletion of a person for an operator; the person is disabled at once.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] sessions
--- KEYS[4] outbox
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] session_prefix: prefix of a session's key, up to the session id
--- ARGV[3] reason: for the person; or empty
--- ARGV[4] at: when the account is deleted, ms
--- @reply not_found
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "ended"

local status = redis.call('HGET', user, 'status')
if not status then return {'not_found'} end
local told = 0
-- An earlier suspension stays, but its end must not let the person in.
redis.call('HDEL', user, 'suspended_until')
redis.call('HSET', user, 'delete_at', at)
if status == 'active' then
  told = tell_of_ends(user, sessions, session_prefix, '', outbox, member, now_ms())
  redis.call('HSET', user, 'status', 'disabled', 'delete_was', status)
  redis.call('HINCRBY', user, 'epoch', 1)
  if reason ~= '' then redis.call('HSET', user, 'suspended_reason', reason) end
end
record(audit, 'deletion_planned_by_operator', '', '', '')
return {'ok', told}
