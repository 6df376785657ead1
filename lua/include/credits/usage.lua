--- @include "now"
-- What AI calls used, by day (UTC), app and model. `used` (hash): 'day client model' to 'calls charged input output
-- cache_read cache_write cache_write_1h', with charged in micro-dollars and the rest in tokens. `searches` (hash): the same
-- field to the web searches of these calls, if there were any. It is a key of its own because a process of an earlier
-- release cannot add to a row of more than seven numbers.

-- Removes the oldest days until a tenth of the room is free. Today stays.
local function prune_usage(used, searches, today, most)
  local days, fields = {}, redis.call('HKEYS', used)
  local left, by_day = #fields, {}
  for _, field in ipairs(fields) do
    local day = tonumber(string.match(field, '^%d+'))
    if not by_day[day] then
      by_day[day] = {}
      days[#days + 1] = day
    end
    by_day[day][#by_day[day] + 1] = field
  end
  table.sort(days)
  for _, day in ipairs(days) do
    if day >= today or left <= most * 0.9 then return end
    for _, field in ipairs(by_day[day]) do
      redis.call('HDEL', used, field)
      redis.call('HDEL', searches, field)
    end
    left = left - #by_day[day]
  end
end

-- Adds a call with `searched` searches; the other numbers are as in a row. Beyond `most` rows of one day, apps and models are
-- not told apart.
local function book_usage(used, searches, today, client, model, charged, input, output, cache_read, cache_write,
    cache_write_1h, searched, most, lasts, now)
  local field = int(today) .. ' ' .. client .. ' ' .. model
  local row = redis.call('HGET', used, field)
  if not row and redis.call('HLEN', used) >= most then
    prune_usage(used, searches, today, most)
    if redis.call('HLEN', used) >= most then
      field = int(today) .. '  '
      row = redis.call('HGET', used, field)
    end
  end
  local calls, c, i, o, cr, cw, cw1 = string.match(row or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not calls then calls, c, i, o, cr, cw, cw1 = 0, 0, 0, 0, 0, 0, 0 end
  -- One format makes one text; the sums by themselves would be seven.
  row = string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f', calls + 1, c + charged, i + input, o + output,
    cr + cache_read, cw + cache_write, cw1 + cache_write_1h)
  if redis.call('HSET', used, field, row) == 1 then redis.call('PEXPIREAT', used, int(now + lasts)) end
  if searched > 0 then
    redis.call('HINCRBY', searches, field, int(searched))
    redis.call('PEXPIREAT', searches, int(now + lasts))
  end
end

-- The first and the last day, and the rows of these days as {field, value, ...}, each value with the searches after it: of
-- one app, or with '' of all. The last day is today if it is 0; the first is `days` days earlier, both included, if it
-- is 0.
local function usage_of(used, searches, client, first, last, days, now)
  if last == 0 then last = math.floor(now / 86400000) end
  if first == 0 then first = last - days + 1 end
  local found, rows, searched = {}, redis.call('HGETALL', used), {}
  local counted = redis.call('HGETALL', searches)
  for position = 1, #counted, 2 do searched[counted[position]] = counted[position + 1] end
  for position = 1, #rows, 2 do
    local day, owner = string.match(rows[position], '^(%d+) (%S*)')
    day = tonumber(day)
    if day >= first and day <= last and (client == '' or owner == client) then
      found[#found + 1] = rows[position]
      found[#found + 1] = rows[position + 1] .. ' ' .. (searched[rows[position]] or '0')
    end
  end
  return first, last, found
end
