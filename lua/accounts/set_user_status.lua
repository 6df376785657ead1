--- Disable or enable a person; disabling ends all their tokens and sessions at once.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] sessions
--- KEYS[4] outbox
--- ARGV[1] status: active or disabled
--- ARGV[2] member: the person in the lists of the shard
--- ARGV[3] session_prefix: prefix of a session's key, up to the session id
--- @reply not_found
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "ended"

local present = redis.call('HGET', user, 'status')
if not present then return {'not_found'} end
local told = 0
if present ~= status then
  told = tell_of_ends(user, sessions, session_prefix, '', outbox, member, now_ms())
end
-- Written even if it is the same: an answer that waits for replicas needs a write that they can confirm.
redis.call('HSET', user, 'status', status)
if present ~= status then
  -- Earlier sessions must not revive when the person is enabled again.
  redis.call('HINCRBY', user, 'epoch', 1)
  record(audit, status == 'active' and 'enabled_by_operator' or 'disabled_by_operator', '', '', '')
end
return {'ok', told}
