--- Add to a person's credits, or take some back, once for each idempotency key.
--- KEYS[1] user
--- KEYS[2] balance
--- KEYS[3] holds
--- KEYS[4] ledger
--- KEYS[5] idem: the record of the idempotency key
--- KEYS[6] activity
--- ARGV[1] amount (number): micro-dollars, negative to take
--- ARGV[2] reason
--- ARGV[3] digest: of the request
--- ARGV[4] first: '1' to do nothing for a person who ever had credits
--- ARGV[5] max_paid (number): micro-dollars that a balance may reach
--- ARGV[6] keep (number): ms that the record is kept
--- ARGV[7] retention (number): ms that an entry stays in the ledger
--- ARGV[8] most (number): entries of the ledger
--- ARGV[9] detail: of the event
--- @reply not_found
--- @reply mismatch
--- @reply too_much
--- @reply insufficient_credits
--- @reply ok paid held replayed
--- @idempotent
--- @durable
--- @reserve
--- @include "credits"
--- @include "audit"
--- @include "touch"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local now = now_ms()
local held = held_of(holds, '', now)
local paid = paid_of(balance)
local before = redis.call('HGET', idem, 'digest')
if before and before ~= digest then return {'mismatch'} end
if before or (first == '1' and redis.call('HEXISTS', balance, 'paid') == 1) then
  touch(balance)
  return {'ok', int(paid), int(held), 1}
end
if paid + amount > max_paid then return {'too_much'} end
-- Held credits are promised to calls in progress.
if amount < 0 and paid + amount < held then return {'insufficient_credits'} end

paid = book_entry(ledger, balance, 'grant', amount, {'reason', reason}, retention, most, now)
redis.call('HSET', idem, 'digest', digest)
redis.call('PEXPIREAT', idem, int(now + keep))
record(activity, amount < 0 and 'credit_taken' or 'credit_added', '', '', '', detail)
return {'ok', int(paid), int(held), 0}
