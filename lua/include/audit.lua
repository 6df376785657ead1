--- @include "now"
-- Appends to the person's audit trail, which keeps the newest 200 events. A list of short texts, since a stream takes
-- 4 KiB for its first entry; the agent comes last, as it alone may hold spaces.
local function record(trail, event, client, address, agent)
  local line = {int(now_ms()), event, client, address, agent}
  redis.call('LPUSH', trail, table.concat(line, ' '))
  redis.call('LTRIM', trail, 0, 199)
end

-- The sign-ins, and the sign-up, among the newest 50 events: what a sign-in is held against before it is recorded.
local function sign_ins(trail)
  local found = {}
  for _, entry in ipairs(redis.call('LRANGE', trail, 0, 49)) do
    if string.find(entry, '^%d+ signed_in') or string.find(entry, '^%d+ signed_up') then found[#found + 1] = entry end
  end
  return found
end
