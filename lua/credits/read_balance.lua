--- Read a person's credits as apps see them. (SPEC 2.4)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] balance
--- KEYS[7] holds
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] client
--- ARGV[5] proof: of the key that the token is bound to, or empty
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply ok remaining reset paid held spend_limit used resets_at
--- @derives proof
--- @reserve
--- @include "guard"
--- @include "credits"
--- @include "spending"

local now = now_ms()
local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now, proof)
if word ~= 'ok' then return {word, a, b} end
local held, own = held_of(holds, client, now)
local month, resets_at = month_of(now)
local ceiling, spent = spent_of(grant, month)
return {'ok', a, b, int(paid_of(balance)), int(held), ceiling and int(ceiling) or '', int(spent + own), int(resets_at)}
