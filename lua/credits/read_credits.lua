--- Read the credits of the signed-in person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] balance
--- KEYS[4] holds
--- KEYS[5] ledger
--- ARGV[1] idle (number): ms
--- ARGV[2] before: the id of an entry, or ''
--- ARGV[3] most (number): entries
--- @reply signed_out
--- @reply ok email email_verified name picture preferences paid held opening opening_at standing entries mails
--- @include "session"
--- @include "account"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local email, verified, name, picture, preferences = profile(user)
local paid, held, opening, opening_at, standing, entries =
  account_of(balance, holds, ledger, before, most, now)
return {'ok', email, verified, name, picture, preferences, paid, held, opening, opening_at, standing, entries,
  redis.call('HGET', user, 'credit_mails') == 'off' and 0 or 1}
