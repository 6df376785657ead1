--- List the other apps a person has connected, for an app with the scope. (SPEC 2.4)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] client: the caller, which the list leaves out
--- ARGV[5] grant_prefix: prefix of a grant's key, up to the client id
--- ARGV[6] most (number): rows of the answer
--- ARGV[7] proof: of the key that the token is bound to, or empty
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply ok remaining reset rows
--- @derives grant_prefix proof
--- @reserve
--- @include "connected"
--- @include "guard"

local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now_ms(), proof)
if word ~= 'ok' then return {word, a, b} end
local rows = {}
for _, other in ipairs(apps_of(user)) do
  if other ~= client then
    local row = redis.call('HMGET', grant_prefix .. other, 'scope', 'connected_at', 'last_used_at', 'revoked_at')
    if row[1] and not row[4] then rows[#rows + 1] = {other, row[1], row[2], row[3] or ''} end
  end
end
newest_first(rows)
for position = #rows, most + 1, -1 do rows[position] = nil end
return {'ok', a, b, rows}
