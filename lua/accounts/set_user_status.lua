--- Disable or enable a person; disabling ends all their tokens and sessions at once.
--- KEYS[1] user
--- KEYS[2] audit
--- ARGV[1] status: active or disabled
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "audit"

local present = redis.call('HGET', user, 'status')
if not present then return {'not_found'} end
-- Written even if it is the same: an answer that waits for replicas needs a write that they can confirm.
redis.call('HSET', user, 'status', status)
if present ~= status then
  -- Earlier sessions must not revive when the person is enabled again.
  redis.call('HINCRBY', user, 'epoch', 1)
  record(audit, status == 'active' and 'enabled_by_operator' or 'disabled_by_operator', '', '', '')
end
return {'ok'}
