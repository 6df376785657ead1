--- List deliveries of an app, newest first.
--- KEYS[1] listed: the deliveries of the app
--- ARGV[1] prefix: prefix of a delivery's key, up to the id
--- ARGV[2] before: the last id of the previous page, or empty
--- ARGV[3] most (number)
--- @reply ok rows
--- @derives prefix
--- @idempotent
--- @include "delivery"

local from = before == '' and -1 or redis.call('ZREVRANK', listed, before)
-- A missing delivery was among the oldest, and nothing follows it.
if not from then return {'ok', {}} end
local rows = {}
for _, id in ipairs(redis.call('ZREVRANGE', listed, from + 1, from + most)) do
  local row = prefix .. id
  -- Anything that is not a row counts as one without fields, so that only the last page is short.
  if redis.call('EXISTS', row) == 1 then rows[#rows + 1] = {id, is_delivery(row) and redis.call('HGETALL', row) or {}} end
end
return {'ok', rows}
