--- List deliveries from a point on, newest first, with a bound on the work.
--- KEYS[1] list: the deliveries of all apps, or of one
--- ARGV[1] prefix: prefix of a delivery's key, up to the id
--- ARGV[2] before: the score from which on to read, exclusive, or empty
--- ARGV[3] most (number): deliveries to return
--- ARGV[4] steps (number): deliveries to read
--- ARGV[5] type: of the event, or empty for any
--- ARGV[6] state: of the delivery, failing or waiting, or empty for any
--- @reply ok rows onward
--- @derives prefix
--- @idempotent
--- @reserve
--- @include "now"
--- @include "delivery"

-- Whether a delivery is in the state that is asked for. A pending one is failing after an attempt, or else waiting.
local function fits(row)
  local is = redis.call('HMGET', row, 'type', 'state', 'last_error')
  if type ~= '' and is[1] ~= type then return false end
  if state == '' or is[2] == state then return true end
  if is[2] ~= 'pending' then return false end
  local failed = is[3] and is[3] ~= ''
  return state == 'failing' and failed or state == 'waiting' and not failed
end

local from = before == '' and '+inf' or '(' .. before
local rows, onward = {}, ''
local found = redis.call('ZREVRANGEBYSCORE', list, from, '-inf', 'WITHSCORES', 'LIMIT', 0, int(steps))
for place = 1, #found, 2 do
  local row = prefix .. found[place]
  onward = found[place + 1]
  if is_delivery(row) and fits(row) then
    rows[#rows + 1] = {found[place], redis.call('HGETALL', row)}
    if #rows == most then return {'ok', rows, onward} end
  end
end
return {'ok', rows, #found == 2 * steps and onward or ''}
