--- Read the person's profile, and the scopes that say how much of it the app sees. (SPEC 4.4, 2.3)
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
--- @reply ok remaining reset scope email email_verified name picture groups
--- @derives proof
--- @reserve
--- @include "guard"

local word, a, b, scope, granted = admit(user, grant, family, access, window, needed, limit, period, now_ms(), proof)
if word ~= 'ok' then return {word, a, b} end
local held = intersect(scope, granted)
local row = redis.call('HMGET', user, 'email', 'verified', 'name', 'picture')
-- Groups may be long, and few apps see them.
local groups = has_scope(held, 'groups') and redis.call('HGET', user, 'groups') or ''
return {'ok', a, b, held, row[1], row[2] or '0', row[3], row[4] or '', groups}
