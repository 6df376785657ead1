--- @include "now"
-- A person's activity: two texts, a line for each event, the newest first. What concerns security is in one, ordinary
-- events are in the other (store/security_events.py). A list would take 80 bytes more for everybody, a stream 4 KiB.
-- The agent comes last in a line, as it alone may hold spaces.
local TRAIL_LINES = 200

-- The lines without the oldest of the most frequent event, `event` counted once more than it is there: no kind of event
-- pushes out the others, however often somebody causes it.
local function make_room(lines, event)
  local counts, most = {[event] = 1}, event
  for _, line in ipairs(lines) do
    local name = string.match(line, '^%d+ (%S*)')
    counts[name] = (counts[name] or 0) + 1
    if counts[name] > counts[most] then most = name end
  end
  for place = #lines, 1, -1 do
    if string.match(lines[place], '^%d+ (%S*)') == most then
      table.remove(lines, place)
      break
    end
  end
end

-- Notes an event in a trail, which is the person's `audit` or, for ordinary events, `activity`. `noted` goes out with the
-- answer of the script (store/engine/scripts.py).
local function record(trail, event, client, address, agent)
  noted[#noted + 1] = {trail, event, client, address, agent}
  local line = string.gsub(table.concat({int(now_ms()), event, client, address, agent}, ' '), '%c', ' ')
  local kept = redis.call('GET', trail) or ''
  local _, count = string.gsub(kept, '\n', '')
  if count >= TRAIL_LINES then
    local lines = {}
    for one in string.gmatch(kept, '[^\n]+') do lines[#lines + 1] = one end
    while #lines >= TRAIL_LINES do make_room(lines, event) end
    kept = table.concat(lines, '\n') .. '\n'
  end
  redis.call('SET', trail, line .. '\n' .. kept)
end

-- Every line of a trail.
local function events_of(trail)
  local lines = {}
  for line in string.gmatch(redis.call('GET', trail) or '', '[^\n]+') do lines[#lines + 1] = line end
  return lines
end

-- The newest 50 sign-ins and the sign-up, among all that the trail has: what a sign-in is held against before it is
-- recorded.
local function sign_ins(trail)
  local found = {}
  for _, entry in ipairs(events_of(trail)) do
    if #found < 50 and (string.find(entry, '^%d+ signed_in') or string.find(entry, '^%d+ signed_up')) then
      found[#found + 1] = entry
    end
  end
  return found
end
