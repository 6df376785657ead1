--- Read the usage of an app's documents. (SPEC 4.6)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] usage
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] proof: of the key that the token is bound to, or empty
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply ok remaining reset fields
--- @derives proof
--- @reserve
--- @include "guard"

local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now_ms(), proof)
if word ~= 'ok' then return {word, a, b} end
return {'ok', a, b, redis.call('HGETALL', usage)}
