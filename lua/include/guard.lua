--- @include "lineage"
--- @include "scope"
--- @include "window"

-- Counts a proof by its mark, for `lasts` ms; returns whether it is the first. Without `lasts` it is taken back.
local function count_proof(mark, lasts)
  if not lasts then return redis.call('DEL', mark) end
  return redis.call('SET', mark, '1', 'PX', lasts, 'NX')
end

-- The guard of every resource call: user active, token live, app not paused, scope carried, window open. So a dead
-- token takes nothing from a window (SPEC 5.4, 8.1). `needed`: the token must carry one of these scopes, and if the first is
-- '@mcp', it must be for the MCP server (`resource.lua`), otherwise for Latchkey's own API; `proof`: of the key
-- that the token is bound to, or empty; `counted`: `check_token` has counted request and proof already; `given`: the values
-- of the grant that are read here, if the script has read them together with others.
-- Returns a word; with 'ok' also remaining, reset, scopes of the token, scopes of the grant, and of a delegated token the
-- delegated families above it, each {id, charges, budgets}; with 'rate_limited' also reset and retry.
local function admit(user, grant, family, access, window, needed, limit, period, now, proof, counted, given)
  if redis.call('HGET', user, 'status') ~= 'active' then return 'invalid_token' end
  local scope = redis.call('GET', access)
  if not scope then return 'invalid_token' end
  given = given or redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'last_used_at', 'paused_at')
  local line = redis.call('HMGET', family, 'epoch', 'revoked', 'scope', 'up')
  if not line[1] or line[1] ~= given[1] or line[2] or given[3] then return 'invalid_token' end
  local chain
  if line[4] then
    chain = lineage(family, access, line[4], given[1])
    if not chain then return 'invalid_token' end
  end
  local mark, lasts
  if scope ~= '1' or proof ~= '' or string.byte(needed) == 64 then
    -- As `parts_of_row`, which is not a function here: every call pays for each function of its script.
    local bound, rest = string.match(scope, '^%*(%S+) ?(.*)$')
    local shown
    shown, mark, lasts = string.match(proof, '^(%S+) ?(%S*) ?(%d*)$')
    if mark == '' then mark = nil end
    -- RFC 9449 7.1, 7.2: a bound token counts with its key alone, and an unbound one is no DPoP token.
    if bound ~= shown then return 'invalid_token' end
    if bound then scope = rest ~= '' and rest or '1' end
    local resource, names = string.match(scope, '^(@%S+) %d+ (.+)$')
    if resource ~= string.match(needed, '^@%S+') then return 'invalid_token' end
    if names then scope = names end
  end
  if scope == '1' then scope = line[3] end

  -- Only a live token learns of the pause. The call takes nothing from the window and uses no proof up.
  if given[5] then return 'app_paused' end

  local carried = false
  for name in string.gmatch(needed, '%S+') do
    if has_scope(scope, name) and has_scope(given[2], name) then carried = true end
  end
  if not carried then return 'insufficient_scope' end

  if counted then mark = nil end
  -- A used proof takes nothing from the window, and only an admitted call leaves a mark.
  if mark and not count_proof(mark, lasts) then return 'proof_used' end
  local admitted, remaining, reset, retry = take_window(window, limit, period, now, counted)
  if not admitted then
    if mark then count_proof(mark) end
    return 'rate_limited', reset, retry
  end
  -- The last use is written at most once a minute, so that most reads do not write.
  if now - tonumber(given[4] or '0') >= 60000 then redis.call('HSET', grant, 'last_used_at', int(now)) end
  return 'ok', remaining, reset, scope, given[2], chain
end
