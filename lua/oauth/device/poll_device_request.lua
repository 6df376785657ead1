--- Tell a device what became of its authorization request. (RFC 8628 3.5)
--- KEYS[1] device
--- ARGV[1] id
--- ARGV[2] slack (number): ms that a poll may come early, because networks deliver unevenly
--- ARGV[3] step (number): seconds that the interval grows after an early poll
--- ARGV[4] longest (number): seconds, the longest interval
--- @reply expired
--- @reply denied
--- @reply allowed user code
--- @reply slow_down
--- @reply pending
--- @reserve
--- @include "now"

local row = redis.call('HMGET', device, 'id', 'answer', 'user', 'code', 'interval', 'polled_at')
-- Another request may have drawn the code since.
if row[1] ~= id then return {'expired'} end
if row[2] == 'allowed' then return {'allowed', row[3], row[4]} end
if row[2] then return {'denied'} end
local now, interval = now_ms(), tonumber(row[5])
redis.call('HSET', device, 'polled_at', int(now))
if row[6] and now < tonumber(row[6]) + interval * 1000 - slack then
  redis.call('HSET', device, 'interval', int(math.min(interval + step, longest)))
  return {'slow_down'}
end
return {'pending'}
