--- Read a person's credits for the operator.
--- KEYS[1] user
--- KEYS[2] balance
--- KEYS[3] holds
--- KEYS[4] ledger
--- ARGV[1] before: the id of an entry, or ''
--- ARGV[2] most (number): entries
--- @reply not_found
--- @reply ok paid held opening opening_at standing entries
--- @idempotent
--- @include "account"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local paid, held, opening, opening_at, standing, entries =
  account_of(balance, holds, ledger, before, most, now_ms())
return {'ok', paid, held, opening, opening_at, standing, entries}
