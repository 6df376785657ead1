--- Set what a connected app may spend in a month and the amounts of its budgets, for the signed-in person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] audit
--- KEYS[5] mails: window of mails about higher spending
--- KEYS[6] undos
--- KEYS[7] factors
--- KEYS[8] passkeys
--- ARGV[1] client
--- ARGV[2] spend_limit: micro-dollars a month, 'none', or '' for no change
--- ARGV[3] idle (number): ms
--- ARGV[4] address
--- ARGV[5] agent
--- ARGV[6] mails_most (number)
--- ARGV[7] mails_period (number): ms
--- ARGV[8] raise_kept (number): ms that the previous limit is remembered
--- ARGV[9] proof (number): ms
--- ARGV[10] amounts: of budgets, lines 'type limit'
--- @reply signed_out
--- @reply unproved
--- @reply not_found
--- @reply ok told
--- @durable
--- @reserve
--- @include "session"
--- @include "factors"
--- @include "spending"
--- @include "allowance"
--- @include "budgets"
--- @include "audit"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
local before = allowance_of(grant)
if not before then return {'not_found'} end
set_spend_limit(grant, spend_limit)
if change_budgets(grant, amounts) then record(audit, 'budget_changed', client, address, agent) end
local after = allowance_of(grant)
note_growth(grant, before, after, raise_kept, now)
if spend_limit ~= '' then record(audit, 'spend_limit_set', client, address, agent) end
return {'ok', told_of_growth(user, undos, before, after, mails, mails_most, mails_period, now)}
