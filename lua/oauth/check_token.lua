--- Admit a call that needs nothing else from the store. (SPEC 5.4)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] proof: of the key that the token is bound to, or empty
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply ok remaining reset
--- @derives proof
--- @reserve
--- @include "guard"

local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now_ms(), proof)
if word ~= 'ok' then return {word, a, b} end
return {'ok', a, b}
