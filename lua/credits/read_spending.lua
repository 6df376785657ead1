--- Sum up the charges of apps to the signed-in person, by day (UTC) and app.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] ledger
--- ARGV[1] idle (number): ms
--- ARGV[2] days (number): number of days, including today
--- ARGV[3] most (number): newest entries to read
--- @reply signed_out
--- @reply ok today whole rows
--- @idempotent
--- @include "session"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local today = math.floor(now / 86400000)
local since = int((today - days + 1) * 86400000)
local sums, order = {}, {}
local entries = redis.call('XREVRANGE', ledger, '+', since, 'COUNT', int(most))
for _, entry in ipairs(entries) do
  local fields = entry[2]
  -- A charge begins with these fields, in this order: kind, amount, paid, client.
  if fields[2] == 'charge' then
    local name = math.floor(tonumber(string.match(entry[1], '^%d+')) / 86400000) .. ' ' .. fields[8]
    if not sums[name] then
      sums[name] = 0
      order[#order + 1] = name
    end
    sums[name] = sums[name] - tonumber(fields[4])
  end
end
local rows = {}
for position, name in ipairs(order) do
  local day, client = string.match(name, '^(%d+) (.*)$')
  rows[position] = {day, client, int(sums[name])}
end
return {'ok', int(today), #entries < most and 1 or 0, rows}
