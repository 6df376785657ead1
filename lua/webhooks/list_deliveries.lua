--- List deliveries of an app, the newest first.
--- KEYS[1] listed: the deliveries of the app
--- ARGV[1] prefix: what stands before an id in the key of a delivery
--- ARGV[2] before: the last id of the page before, or empty
--- ARGV[3] most (number)
--- @reply ok rows
--- @derives prefix
--- @idempotent
--- @include "delivery"

local from = before == '' and -1 or redis.call('ZREVRANK', listed, before)
-- What is gone was among the oldest, and nothing follows it.
if not from then return {'ok', {}} end
local rows = {}
for _, id in ipairs(redis.call('ZREVRANGE', listed, from + 1, from + most)) do
  local row = prefix .. id
  -- What is no row counts as one without fields: a page has as many as were asked for, but for the last one.
  if redis.call('EXISTS', row) == 1 then rows[#rows + 1] = {id, is_delivery(row) and redis.call('HGETALL', row) or {}} end
end
return {'ok', rows}
