--- @include "now"
-- Pauses of an app by the person: `paused_at` in the grant. After a pause, `resumed` has when it ended and when it began
-- (ms), for whoever takes the account back.

-- Ends a pause. Returns whether there was one.
local function resume(grant, now)
  local since = redis.call('HGET', grant, 'paused_at')
  if not since then return false end
  redis.call('HDEL', grant, 'paused_at')
  redis.call('HSET', grant, 'resumed', int(now) .. ' ' .. since)
  return true
end

-- Restores a pause that ended at `since` (ms) or later. Returns whether there was one.
local function pause_again(grant, since)
  local ended, began = string.match(redis.call('HGET', grant, 'resumed') or '', '^(%d+) (%d+)$')
  redis.call('HDEL', grant, 'resumed')
  return ended and tonumber(ended) >= since and redis.call('HSETNX', grant, 'paused_at', began) == 1
end
