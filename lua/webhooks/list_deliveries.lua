--- List deliveries of an app, newest first.
--- KEYS[1] listed: the deliveries of the app
--- ARGV[1] prefix: prefix of a delivery's key, up to the id
--- ARGV[2] before: the last id of the previous page, or empty
--- ARGV[3] most (number)
--- ARGV[4] type: of the event, or empty for any
--- ARGV[5] state: of the delivery, or empty for any
--- @reply ok rows
--- @derives prefix
--- @idempotent
--- @include "delivery"

local from = before == '' and -1 or redis.call('ZREVRANK', listed, before)
-- A missing delivery was among the oldest, and nothing follows it.
if not from then return {'ok', {}} end

local function fits(row)
  if type == '' and state == '' then return true end
  if not is_delivery(row) then return false end
  local is = redis.call('HMGET', row, 'type', 'state')
  return (type == '' or is[1] == type) and (state == '' or is[2] == state)
end

local rows, place, ids = {}, from + 1, nil
repeat
  ids = redis.call('ZREVRANGE', listed, place, place + most - 1)
  for _, id in ipairs(ids) do
    local row = prefix .. id
    -- Anything that is not a row counts as one without fields, so that only the last page is short.
    if #rows < most and redis.call('EXISTS', row) == 1 and fits(row) then
      rows[#rows + 1] = {id, is_delivery(row) and redis.call('HGETALL', row) or {}}
    end
  end
  place = place + most
  -- Without a filter one step is enough: few rows are missing, and the caller asks again.
until #ids < most or #rows == most
return {'ok', rows}
