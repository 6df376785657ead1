--- Add a process's counts of an app to today's figures. A deleted app has none.
--- KEYS[1] app
--- KEYS[2] days: by 'day:name', with days since 1970; pruned: the day of the last removal of old ones; used-<mark>:
---   the last day on which a client secret was used
---   'day:model <id>': calls, charged (micro-dollars), input, output, cache_read, cache_write, cache_write_1h (tokens),
---   web searches; a row of an earlier release has no searches
--- KEYS[3] people
--- ARGV[1] calls
--- ARGV[2] limited
--- ARGV[3] spent: micro-dollars
--- ARGV[4] connected
--- ARGV[5] disconnected
--- ARGV[6] keep (number): days
--- ARGV[7] used: marks of client secrets, with spaces between them
--- ARGV[8] models: a line for each model: the eight numbers of its row, and its id
--- @reply gone
--- @reply ok
--- @reserve
--- @include "now"

-- The key has a registration or a tombstone; only a tombstone has an expiry.
if redis.call('PTTL', app) ~= -1 then return {'gone'} end
local now = now_ms()
local today = math.floor(now / 86400000)
local counted = {calls = calls, limited = limited, spent = spent, connected = connected, disconnected = disconnected}
for name, number in pairs(counted) do
  if number ~= '0' then redis.call('HINCRBY', days, int(today) .. ':' .. name, number) end
end
for line in string.gmatch(models, '[^\n]+') do
  local counts, model = string.match(line, '^(%d+ %d+ %d+ %d+ %d+ %d+ %d+ %d+) (.+)$')
  local field = int(today) .. ':model ' .. model
  local sums, old = {}, string.gmatch(redis.call('HGET', days, field) or '', '%d+')
  for number in string.gmatch(counts, '%d+') do sums[#sums + 1] = int((old() or 0) + number) end
  redis.call('HSET', days, field, table.concat(sums, ' '))
end
for mark in string.gmatch(used, '%x+') do redis.call('HSET', days, 'used-' .. mark, int(today)) end
if redis.call('HGET', days, 'pruned') ~= int(today) then
  for _, field in ipairs(redis.call('HKEYS', days)) do
    local day = tonumber(string.match(field, '^(%d+):'))
    if string.sub(field, 1, 5) == 'used-' then day = tonumber(redis.call('HGET', days, field)) end
    if day and day <= today - keep then redis.call('HDEL', days, field) end
  end
  redis.call('HSET', days, 'pruned', int(today))
end
redis.call('PEXPIREAT', days, int(now + keep * 86400000))
if connected ~= disconnected then redis.call('INCRBY', people, int(tonumber(connected) - tonumber(disconnected))) end
return {'ok'}
