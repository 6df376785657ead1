--- Add events to a shard of the trail, drop days that are too old, and the oldest ones of a stream that takes too much.
--- KEYS[1] strangers: the index of the days of a stream
--- KEYS[2] people: the same
--- KEYS[3] sensitive: the same
--- KEYS[4] operator: the same
--- KEYS[5] sizes
--- ARGV[1] most (json): an object with the bytes that each stream may take here
--- ARGV[2] days (number): kept before the present one
--- ARGV[3] step (number): between two numbers of this shard, so no two shards have the same id
--- ARGV[4] begun (number): when the batch was begun in another shard, ms; or 0
--- ARGV[5] least (number): ms of the newest entry that the caller wrote
--- ARGV[6] batch (json): an array of [stream, age in ms, number, the event]
--- @reply ok ms cut_days cut_events
--- @idempotent
--- @reserve
--- @include "trail"

local now = begun > 0 and begun or now_ms()
-- Ids rise over all streams of a shard and all batches of a caller, even if the clock steps back: readers merge by id.
local ms, shift = math.max(now, least), 0
for _, index in ipairs({strangers, people, sensitive, operator}) do
  local last_ms, last_number = newest_of(index)
  if last_ms and (last_ms > ms or (last_ms == ms and last_number >= batch[1][3] + shift)) then
    ms, shift = last_ms, math.max(0, last_number + step - batch[1][3])
  end
end

local day = math.floor(ms / DAY_MS)
local expires = (day + 1 + days) * DAY_MS
local named = {strangers = strangers, people = people, sensitive = sensitive, operator = operator}
local added = {}
for _, entry in ipairs(batch) do
  local stream, age, number, event = entry[1], entry[2], entry[3], entry[4]
  local size = append(log_of(named[stream], day), ms, number + shift, now - age, event)
  added[stream] = (added[stream] or 0) + size
end

local cut_days, cut_events = 0, 0
for stream, index in pairs(named) do
  -- Also of a quiet stream, so it keeps nothing for longer than the others.
  local oldest = next_day(index, 0, false)
  while oldest and oldest < day - days do
    drop_day(index, log_of(index, oldest), sizes, stream, oldest)
    oldest = next_day(index, 0, false)
  end
  if added[stream] then
    list_day(index, log_of(index, day), day, expires)
    local taken = resize(sizes, stream, day, added[stream])
    while taken > most[stream] do
      local cut
      oldest = next_day(index, 0, false)
      if oldest < day then
        taken, cut_days = drop_day(index, log_of(index, oldest), sizes, stream, oldest), cut_days + 1
      else
        taken, cut = trim_day(log_of(index, day), sizes, stream, day)
        cut_events = cut_events + cut
        if cut == 0 then break end
      end
    end
  end
end
redis.call('PEXPIREAT', sizes, int(expires))
return {'ok', int(ms), int(cut_days), int(cut_events)}
