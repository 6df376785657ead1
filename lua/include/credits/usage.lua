--- @include "now"
-- What AI calls used, by day (UTC), app and model. `used` (hash): 'day client model' to 'calls charged input output
-- cache_read cache_write cache_write_1h', with charged in micro-dollars and the rest in tokens.

-- Removes the oldest days until a tenth of the room is free. Today stays.
local function prune_usage(used, today, most)
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
    for _, field in ipairs(by_day[day]) do redis.call('HDEL', used, field) end
    left = left - #by_day[day]
  end
end

-- Adds a call. `counts`: as in a row, from `calls` on. Beyond `most` rows of one day, apps and models are not told apart.
local function book_usage(used, today, client, model, counts, most, lasts, now)
  local field = int(today) .. ' ' .. client .. ' ' .. model
  local row = redis.call('HGET', used, field)
  if not row and redis.call('HLEN', used) >= most then
    prune_usage(used, today, most)
    if redis.call('HLEN', used) >= most then
      field = int(today) .. '  '
      row = redis.call('HGET', used, field)
    end
  end
  local sums = {}
  for number in string.gmatch(row or '0 0 0 0 0 0 0', '%d+') do sums[#sums + 1] = int(number + counts[#sums + 1]) end
  if redis.call('HSET', used, field, table.concat(sums, ' ')) == 1 then
    redis.call('PEXPIREAT', used, int(now + lasts))
  end
end

-- The first and the last day, and the rows of these days as {field, value, ...}: of one app, or with '' of all. The last
-- day is today if it is 0; the first is `days` days earlier, both included, if it is 0.
local function usage_of(used, client, first, last, days, now)
  if last == 0 then last = math.floor(now / 86400000) end
  if first == 0 then first = last - days + 1 end
  local found, rows = {}, redis.call('HGETALL', used)
  for position = 1, #rows, 2 do
    local day, owner = string.match(rows[position], '^(%d+) (%S*)')
    day = tonumber(day)
    if day >= first and day <= last and (client == '' or owner == client) then
      found[#found + 1] = rows[position]
      found[#found + 1] = rows[position + 1]
    end
  end
  return first, last, found
end
