--- Disable or enable a person; disabled, every token and session of theirs is dead at once.
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
-- Also where it stands there already: an answer that waits for replicas needs something for them to confirm.
redis.call('HSET', user, 'status', status)
if present ~= status then
  -- Sessions from before do not come back to life when the person is enabled again.
  redis.call('HINCRBY', user, 'epoch', 1)
  record(audit, status == 'active' and 'enabled_by_operator' or 'disabled_by_operator', '', '', '')
end
return {'ok'}
