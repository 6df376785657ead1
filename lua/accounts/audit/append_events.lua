--- Add events to the streams of the security log, and drop the oldest beyond their bounds.
--- KEYS[1] strangers
--- KEYS[2] people
--- KEYS[3] sensitive
--- KEYS[4] operator
--- ARGV[1] most (json): an object with the events kept in each stream
--- ARGV[2] keep (number): ms
--- ARGV[3] batch (json): an array of [stream, age in ms, the event]
--- @reply ok
--- @idempotent
--- @reserve
--- @include "now"

local now = now_ms()
-- Ids rise over all streams together, even if the clock steps back: readers merge by id, and one id is their position.
local ms, number = now, 0
for _, stream in ipairs({strangers, people, sensitive, operator}) do
  local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  if newest then
    local last_ms, last_number = string.match(newest[1], '^(%d+)-(%d+)$')
    last_ms, last_number = tonumber(last_ms), tonumber(last_number)
    if last_ms > ms or (last_ms == ms and last_number >= number) then ms, number = last_ms, last_number + 1 end
  end
end

local named = {strangers = strangers, people = people, sensitive = sensitive, operator = operator}
local written = {}
for _, entry in ipairs(batch) do
  local stream, age, event = named[entry[1]], entry[2], entry[3]
  redis.call('XADD', stream, 'MAXLEN', '~', int(most[entry[1]]), int(ms) .. '-' .. int(number),
    'at', int(now - age), 'event', event)
  number, written[stream] = number + 1, true
end
for _, stream in ipairs({strangers, people, sensitive, operator}) do
  -- Trims exactly, and all streams: otherwise a quiet stream would keep old events for long.
  redis.call('XTRIM', stream, 'MINID', int(now - keep))
  if written[stream] then redis.call('PEXPIRE', stream, int(keep)) end
end
return {'ok'}
