--- @include "now"
--- @include "period"
-- Daily limits (UTC), in whole micro-dollars. A person's limit: `balance` has spent_day, and day_spent, the charges of that
-- day. An app's limit: people of one app are in many slots, so each shard has a part of the day's sum, its lease. `lease`
-- (hash): day; leased; spent, the charges of calls that began that day; by hold, 'amount ends' of an open hold. A hold ends
-- by itself. If the clock steps back over the end of a day, the later day continues.
local DAY_MS = 86400000

local function day_of(now)
  return math.floor(now / DAY_MS)
end

-- The person's charges of today, and the day that counts.
local function spent_on(balance, today)
  local row = redis.call('HMGET', balance, 'spent_day', 'day_spent')
  return in_period(row[1], row[2], today)
end

-- The day of the lease, the rest of the lease, and the sum of its open holds. Drops ended holds and the fields of
-- earlier days.
local function lease_of(lease, today, now)
  local day, leased, spent, held, over = 0, 0, 0, 0, {}
  local rows, holds = redis.call('HGETALL', lease), {}
  for position = 1, #rows, 2 do
    local name, value = rows[position], rows[position + 1]
    if name == 'day' then
      day = tonumber(value)
    elseif name == 'leased' then
      leased = tonumber(value)
    elseif name == 'spent' then
      spent = tonumber(value)
    else
      local amount, ends = string.match(value, '^(%d+) (%d+)$')
      holds[#holds + 1] = name
      if tonumber(ends) <= now then over[#over + 1] = name else held = held + tonumber(amount) end
    end
  end
  if day < today and #rows > 0 then
    -- The fields come before the holds go, so that the key never vanishes in between.
    redis.call('HSET', lease, 'day', int(today), 'leased', '0', 'spent', '0')
    over = holds
  end
  for _, name in ipairs(over) do redis.call('HDEL', lease, name) end
  if day < today then return today, 0, 0 end
  return day, leased - spent - held, held
end

-- Adds a slice of the app's limit for `day` to the lease. A slice for another day is lost.
local function add_slice(lease, day, slice, now)
  if lease_of(lease, day_of(now), now) ~= day then return end
  redis.call('HSET', lease, 'day', int(day))
  redis.call('HINCRBY', lease, 'leased', int(slice))
  redis.call('PEXPIREAT', lease, int(now + 2 * DAY_MS))
end

-- Ends a hold on a lease with what it was charged. A hold of an earlier day is gone already.
local function end_on_lease(lease, hold, charged)
  if redis.call('HDEL', lease, hold) == 1 and charged > 0 then redis.call('HINCRBY', lease, 'spent', int(charged)) end
end
