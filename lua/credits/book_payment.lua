--- Book what happened to a person's payment, once and in any order; a reversal may leave the balance below zero.
--- KEYS[1] user
--- KEYS[2] balance
--- KEYS[3] ledger
--- KEYS[4] payments
--- KEYS[5] activity
--- ARGV[1] payment: its id at the provider
--- ARGV[2] what: paid, refunded, withdrawn or returned
--- ARGV[3] amount (number): micro-dollars; with refunded the sum of all refunds
--- ARGV[4] at (number): s, when the provider noted it
--- ARGV[5] dispute: its id, with withdrawn and returned
--- ARGV[6] max_paid (number): micro-dollars that a balance may reach
--- ARGV[7] most_disputes (number): about one payment
--- ARGV[8] retention (number): ms that an entry stays in the ledger
--- ARGV[9] most (number): entries of the ledger
--- @reply not_found
--- @reply too_much
--- @reply ok paid bought taken to
--- @idempotent
--- @durable
--- @reserve
--- @include "credits"
--- @include "payments"
--- @include "preferences"
--- @include "audit"
--- @include "touch"

local row = redis.call('HMGET', user, 'email', 'language', 'zone')
if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local now = now_ms()
local found = payment_of(payments, payment)
local bought = 0
if what == 'paid' then
  if found.paid == 0 then
    if paid_of(balance) + amount > max_paid then return {'too_much'} end
    found.paid, bought = amount, amount
  end
elseif what == 'refunded' then
  note_refunds(found, amount, at)
else
  note_dispute(found, dispute, amount, what, at)
  if #found.disputes > most_disputes then return {'too_much'} end
end

-- Before the purchase is booked, there is no credit to take back: `due_of` is 0, and the rest is booked with the purchase.
local taken = due_of(found) - found.taken
found.taken = found.taken + taken
if bought > 0 then
  book_entry(ledger, balance, 'purchase', bought, {'payment', payment}, retention, most, now)
  record(activity, 'credit_bought', '', '', '')
end
if taken ~= 0 then
  local cause = (what == 'refunded' or what == 'paid' and found.refunded > 0) and 'refund' or 'dispute'
  redis.call('HINCRBY', balance, 'reversed', int(taken))
  book_entry(ledger, balance, 'reversal', -taken, {'payment', payment, 'cause', cause}, retention, most, now)
  record(activity, taken > 0 and 'credit_reversed' or 'credit_returned', '', '', '')
end
write_payment(payments, payment, found)
touch(payments)
local to = row[1] and (bought > 0 or taken ~= 0) and {in_one(row[2], row[3]), row[1]} or {}
return {'ok', int(paid_of(balance)), int(bought), int(taken), to}
