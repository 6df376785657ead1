--- @include "now"
-- A person's audit trail: one text, a line for each of the newest 200 events, the newest first. A list would take 80
-- bytes more for everybody, a stream 4 KiB. The agent comes last in a line, as it alone may hold spaces.
local function record(trail, event, client, address, agent)
  local line = table.concat({int(now_ms()), event, client, address, agent}, ' ')
  local kept, ends = redis.call('GET', trail) or '', 0
  for _ = 1, 199 do
    ends = string.find(kept, '\n', ends + 1, true)
    if not ends then break end
  end
  if ends then kept = string.sub(kept, 1, ends) end
  redis.call('SET', trail, (string.gsub(line, '%c', ' ')) .. '\n' .. kept)
end

-- The lines of the newest `most` events.
local function newest_events(trail, most)
  local lines = {}
  for line in string.gmatch(redis.call('GET', trail) or '', '[^\n]+') do
    if #lines == most then break end
    lines[#lines + 1] = line
  end
  return lines
end

-- The sign-ins, and the sign-up, among the newest 50 events: what a sign-in is held against before it is recorded.
local function sign_ins(trail)
  local found = {}
  for _, entry in ipairs(newest_events(trail, 50)) do
    if string.find(entry, '^%d+ signed_in') or string.find(entry, '^%d+ signed_up') then found[#found + 1] = entry end
  end
  return found
end
