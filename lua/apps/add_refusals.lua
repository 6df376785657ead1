--- Add a process's counts of an app's refused requests to the app's log. A deleted app has none.
--- KEYS[1] app
--- KEYS[2] refusals: by cause, a tab and the value: how often, the first time and the last, epoch ms
--- ARGV[1] batch (json): an array of [cause, value, how often]
--- ARGV[2] most (number): refusals that are kept
--- ARGV[3] most_values (number): values of one cause that are told apart
--- ARGV[4] keep (number): ms after the last time
--- @reply gone
--- @reply ok
--- @reserve
--- @include "now"

-- The key has a registration or a tombstone; only a tombstone has an expiry.
if redis.call('PTTL', app) ~= -1 then return {'gone'} end
local now = now_ms()
local kept, values, last = {}, {}, {}
local stored = redis.call('HGETALL', refusals)
for position = 1, #stored, 2 do
  local name = stored[position]
  kept[name] = stored[position + 1]
  last[name] = tonumber(string.match(kept[name], ' (%d+)$'))
  local cause = string.match(name, '^([^\t]*)')
  values[cause] = (values[cause] or 0) + 1
end
for _, one in ipairs(batch) do
  local cause, value, times = one[1], one[2], one[3]
  local name = cause .. '\t' .. value
  if not kept[name] and (values[cause] or 0) >= most_values then name = cause .. '\t' end
  local before, first = 0, int(now)
  if kept[name] then
    before, first = string.match(kept[name], '^(%d+) (%d+) ')
  else
    values[cause] = (values[cause] or 0) + 1
  end
  kept[name] = int(tonumber(before) + times) .. ' ' .. first .. ' ' .. int(now)
  last[name] = now
  redis.call('HSET', refusals, name, kept[name])
end
local order = {}
for name in pairs(kept) do order[#order + 1] = name end
-- By time and name, so that every store drops the same ones.
table.sort(order, function(one, other)
  if last[one] ~= last[other] then return last[one] > last[other] end
  return one < other
end)
for position, name in ipairs(order) do
  if position > most or last[name] <= now - keep then redis.call('HDEL', refusals, name) end
end
redis.call('PEXPIRE', refusals, int(keep))
return {'ok'}
