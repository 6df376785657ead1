--- Read the log of an app's refused requests.
--- KEYS[1] refusals
--- ARGV[1] keep (number): ms after the last time
--- @reply ok rows
--- @idempotent
--- @include "now"

local since, rows = now_ms() - keep, {}
local stored = redis.call('HGETALL', refusals)
for position = 1, #stored, 2 do
  if tonumber(string.match(stored[position + 1], ' (%d+)$')) > since then
    rows[#rows + 1] = stored[position]
    rows[#rows + 1] = stored[position + 1]
  end
end
return {'ok', rows}
