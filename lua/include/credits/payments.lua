-- Payments for credits. `payments` (hash): the id of a payment to 'paid taken refunded at', and for each dispute about it
-- ' id:amount:state:at'. In micro-dollars: paid, what the person bought, 0 until that is known; taken, what reversals took
-- back; refunded, the sum of all refunds. `at` is when the provider noted it (s): the newest notice counts, in whatever order
-- they come. The state of a dispute is withdrawn or returned.

local function payment_of(payments, id)
  local paid, taken, refunded, at, rest =
    string.match(redis.call('HGET', payments, id) or '0 0 0 0', '^(%d+) (%d+) (%d+) (%d+)(.*)$')
  local found = {paid = tonumber(paid), taken = tonumber(taken), refunded = tonumber(refunded), at = tonumber(at)}
  found.disputes = {}
  for dispute, amount, state, since in string.gmatch(rest, ' ([%w_]+):(%d+):(%l+):(%d+)') do
    found.disputes[#found.disputes + 1] = {id = dispute, amount = tonumber(amount), state = state, at = tonumber(since)}
  end
  return found
end

local function write_payment(payments, id, payment)
  local parts = {int(payment.paid), int(payment.taken), int(payment.refunded), int(payment.at)}
  for _, one in ipairs(payment.disputes) do
    parts[#parts + 1] = table.concat({one.id, int(one.amount), one.state, int(one.at)}, ':')
  end
  redis.call('HSET', payments, id, table.concat(parts, ' '))
end

-- Notes the sum of all refunds. Of two notices of the same second, the larger sum is the later one.
local function note_refunds(payment, amount, at)
  if at > payment.at or at == payment.at and amount > payment.refunded then
    payment.refunded, payment.at = amount, at
  end
end

-- Notes what became of the money in a dispute. In the same second, it is withdrawn before it is returned.
local function note_dispute(payment, id, amount, state, at)
  for _, one in ipairs(payment.disputes) do
    if one.id == id then
      if at > one.at or at == one.at and state == 'returned' then one.amount, one.state, one.at = amount, state, at end
      return
    end
  end
  payment.disputes[#payment.disputes + 1] = {id = id, amount = amount, state = state, at = at}
end

-- What has to be taken back of a payment, never more than was paid.
local function due_of(payment)
  local due = payment.refunded
  for _, one in ipairs(payment.disputes) do
    if one.state == 'withdrawn' then due = due + one.amount end
  end
  return math.min(due, payment.paid)
end
