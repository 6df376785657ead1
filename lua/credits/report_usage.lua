--- Read what an app's AI calls for a person used, for the app. (SPEC 8.1)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] used
--- KEYS[7] searches
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] client
--- ARGV[5] proof: of the key that the token is bound to, or empty
--- ARGV[6] first (number): day since 1970; 0 for none
--- ARGV[7] last (number): the same
--- ARGV[8] days (number): how many, without a first day
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply ok remaining reset first last rows
--- @derives proof
--- @reserve
--- @include "guard"
--- @include "usage"

local now = now_ms()
local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now, proof)
if word ~= 'ok' then return {word, a, b} end
local from, to, rows = usage_of(used, searches, client, first, last, days, now)
return {'ok', a, b, from, to, rows}
