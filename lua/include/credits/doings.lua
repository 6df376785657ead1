--- @include "now"
--- @include "credits"
--- @include "window"
-- What a person's apps do at the moment. Nothing is counted for it: it reads what limits and reports count anyway.

-- The AI calls of today (UTC) by app.
local function ai_calls_of(used, now)
  local today, rows, day = {}, redis.call('HGETALL', used), int(math.floor(now / 86400000))
  for position = 1, #rows, 2 do
    local on, client = string.match(rows[position], '^(%d+) (%S*)')
    if on == day then today[client] = (today[client] or 0) + tonumber(string.match(rows[position + 1], '^%d+')) end
  end
  return today
end

-- The AI calls in progress by app.
local function running_of(holds, now)
  local running = {}
  for _, row in ipairs(redis.call('HVALS', holds)) do
    local stands, _, ends, client = read_hold(row)
    if stands and ends > now then running[client] = (running[client] or 0) + 1 end
  end
  return running
end

-- The numbers of an app: AI calls of today, those in progress, and its requests in each of `windows`, a text of
-- 'group limit period'. `last`: when the app was last used. That is known to the minute, and windows are no longer.
local function doings_of(prefix, client, last, today, running, windows, now)
  local found = {today[client] or 0, running[client] or 0}
  local idle = now - tonumber(last or '0') >= 120000
  for group, limit, period in string.gmatch(windows, '(%S+) (%d+) (%d+)') do
    local row = not idle and redis.call('GET', prefix .. 'limit:' .. group .. ':' .. client) or ''
    local first, number = string.match(row, '^(%d+) (%d+) %d+$')
    local left = first and left_by(tonumber(first), tonumber(limit), tonumber(period) / WINDOW_STEPS, now) or 0
    found[#found + 1] = math.max(0, tonumber(number or '0') - left)
  end
  return found
end
