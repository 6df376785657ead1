--- @include "credits"
-- A person's credits, for the person and the operator: paid, held, opening, opening_at, holds (client, amount, ends) and
-- the newest `most` entries of the ledger before the entry `before` ('' for the newest of all).
local function account_of(balance, holds, ledger, before, most, now)
  local held = held_of(holds, '', now)
  local standing, rows = {}, redis.call('HGETALL', holds)
  for position = 1, #rows, 2 do
    local stands, amount, ends, client = read_hold(rows[position + 1])
    if stands then standing[#standing + 1] = {client, int(amount), int(ends)} end
  end
  local opening = redis.call('HMGET', balance, 'opening', 'opening_at')
  local from = before == '' and '+' or '(' .. before
  return int(paid_of(balance)), int(held), opening[1] or '0', opening[2] or '0', standing,
    redis.call('XREVRANGE', ledger, from, '-', 'COUNT', int(most))
end
