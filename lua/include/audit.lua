--- @include "now"
-- A person's activity: two texts with a line for each event, newest first. One has security events, the other ordinary
-- events (store/security_events.py). A list would take 80 bytes more for each person, a stream 4 KiB. The agent is last in
-- a line, because only the agent may contain spaces.
local TRAIL_LINES = 200

-- The lines without the oldest one of the most frequent event, where the new `event` counts too: so no kind of event pushes
-- out the others, however often somebody causes it.
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

-- Notes an event for the security log alone. `trail`: as in `record`.
local function record_apart(trail, event, client, address, agent)
  noted[#noted + 1] = {trail, event, client, address, agent, int(now_ms())}
end

-- Notes an event in a trail: the person's `audit` or, for ordinary events, `activity`. The script returns `noted` with its
-- answer (store/engine/scripts.py), and the loader adds what notes it for the security log. The `detail`, without control
-- characters, is for the log alone.
local function record(trail, event, client, address, agent, detail)
  local now = int(now_ms())
  noted[#noted + 1] = {trail, event, client, address, agent, now, detail}
  local line = string.gsub(table.concat({now, event, client, address, agent}, ' '), '%c', ' ')
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

-- The newest 50 sign-ins, and the sign-up, in the trail: a sign-in is compared with them before it is recorded.
local function sign_ins(trail)
  local found = {}
  for _, entry in ipairs(events_of(trail)) do
    if #found < 50 and (string.find(entry, '^%d+ signed_in') or string.find(entry, '^%d+ signed_up')) then
      found[#found + 1] = entry
    end
  end
  return found
end
