--- Add events to the security log, and drop the oldest beyond its bounds.
--- KEYS[1] events
--- ARGV[1] most: events kept
--- ARGV[2] keep: ms
--- ARGV[3] batch: a JSON array of [age in ms, the event]
--- @reply ok
--- @idempotent
--- @reserve
--- @include "now"
local events = KEYS[1]
local most, keep, batch = tonumber(ARGV[1]), tonumber(ARGV[2]), cjson.decode(ARGV[3])

local now = now_ms()
for _, entry in ipairs(batch) do
  redis.call('XADD', events, 'MAXLEN', '~', most, '*', 'at', int(now - entry[1]), 'event', entry[2])
end
redis.call('XTRIM', events, 'MINID', '~', int(now - keep))
redis.call('PEXPIRE', events, keep)
return {'ok'}
