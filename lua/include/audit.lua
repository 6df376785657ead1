--- @include "now"
-- Appends to the person's audit trail, which keeps the newest 200 events. A list of short texts, since a stream takes
-- 4 KiB for its first entry; the agent comes last, as it alone may hold spaces.
local function record(trail, event, client, address, agent)
  local line = {int(now_ms()), event, client, address, agent}
  redis.call('LPUSH', trail, table.concat(line, ' '))
  redis.call('LTRIM', trail, 0, 199)
end
