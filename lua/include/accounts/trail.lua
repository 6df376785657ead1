--- @include "now"
-- A stream of the trail is a log for each day (UTC), and an index of these days. `sizes` has about how many bytes each day
-- and each stream take.
local DAY_MS = 86400000
-- The bytes of an entry in memory, apart from its event.
local ENTRY_BYTES = 64

-- The key of a day's log. `day`: days since 1970.
local function log_of(index, day)
  return index .. ':' .. int(day)
end

-- The day of an entry's id, or of a bound such as '(1000-5', '-' or '+'.
local function day_of(id)
  local ms = string.match(id, '^%(?(%d+)')
  if ms then return math.floor(tonumber(ms) / DAY_MS) end
  return id == '+' and 2 ^ 40 or 0
end

-- A page of a day's log.
local function page_of(log, begin, last, most, backwards)
  if backwards then return redis.call('XREVRANGE', log, begin, last, 'COUNT', int(most)) end
  return redis.call('XRANGE', log, begin, last, 'COUNT', int(most))
end

-- Milliseconds and number of the newest entry of a stream, or nil.
local function newest_of(index)
  local day = redis.call('ZREVRANGE', index, 0, 0)[1]
  local log = day and log_of(index, day)
  local newest = log and page_of(log, '+', '-', 1, true)[1]
  if not newest then return nil end
  local ms, number = string.match(newest[1], '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(number)
end

-- The next day from `day` on that a stream has: towards the past with `backwards`. Nil if there is none.
local function next_day(index, day, backwards)
  local found
  if backwards then
    found = redis.call('ZREVRANGEBYSCORE', index, int(day), '-inf', 'LIMIT', 0, 1)
  else
    found = redis.call('ZRANGEBYSCORE', index, int(day), '+inf', 'LIMIT', 0, 1)
  end
  return tonumber(found[1])
end

-- Adds to the bytes of a stream's day. Returns the bytes of the stream.
local function resize(sizes, stream, day, by)
  redis.call('HINCRBY', sizes, stream .. ':' .. int(day), int(by))
  return redis.call('HINCRBY', sizes, stream, int(by))
end

-- Adds an event to the log of a day. Returns its bytes.
local function append(log, ms, number, at, event)
  redis.call('XADD', log, int(ms) .. '-' .. int(number), 'at', int(at), 'event', event)
  return #event + ENTRY_BYTES
end

-- Notes that a stream has a day, whose log ends by itself later.
local function list_day(index, log, day, expires)
  redis.call('ZADD', index, int(day), int(day))
  redis.call('PEXPIREAT', log, int(expires))
  redis.call('PEXPIREAT', index, int(expires))
end

-- Removes a day. Returns the bytes that the stream still takes.
local function drop_day(index, log, sizes, stream, day)
  redis.call('UNLINK', log)
  redis.call('ZREM', index, int(day))
  local size = tonumber(redis.call('HGET', sizes, stream .. ':' .. int(day)) or '0')
  redis.call('HDEL', sizes, stream .. ':' .. int(day))
  return redis.call('HINCRBY', sizes, stream, int(-size))
end

-- Removes the oldest quarter of a day. Returns the bytes that the stream still takes, and how many entries went.
local function trim_day(log, sizes, stream, day)
  local size = tonumber(redis.call('HGET', sizes, stream .. ':' .. int(day)) or '0')
  local before = redis.call('XLEN', log)
  local cut = redis.call('XTRIM', log, 'MAXLEN', int(math.floor(before * 3 / 4)))
  return resize(sizes, stream, day, before > 0 and -math.floor(size * cut / before) or 0), cut
end
