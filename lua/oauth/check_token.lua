--- Let in a call that asks the store for nothing else. (SPEC 5.4)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- ARGV[1] needed: scopes of which one must be carried
--- ARGV[2] limit
--- ARGV[3] period: ms
--- @reply invalid_token
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply ok remaining reset
--- @reserve
--- @include "guard"
local user, grant, family, access, window = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local needed, limit, period = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now_ms())
if word ~= 'ok' then return {word, a, b} end
return {'ok', a, b}
