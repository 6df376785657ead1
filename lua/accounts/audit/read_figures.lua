--- Read the figures of the last days, the oldest first.
--- KEYS[1] figures: as in `count_activity`
--- KEYS[2] active: the same
--- ARGV[1] days (number)
--- @reply ok today rows: for each day sign-ins, refusals, sign-ups and active people
--- @idempotent
--- @include "now"

local today, rows = math.floor(now_ms() / 86400000), {}
for day = today - days + 1, today do
  local row = figures .. ':' .. int(day)
  local seen = active .. ':' .. int(day)
  local counts = redis.call('HMGET', row, 'sign_ins', 'refusals', 'sign_ups')
  rows[#rows + 1] = {counts[1] or '0', counts[2] or '0', counts[3] or '0', redis.call('PFCOUNT', seen)}
end
return {'ok', int(today), rows}
