--- @include "scope"
--- @include "window"
-- The guard of every resource call: user active, token live, scope carried, window open, in this order, so that a dead
-- token takes nothing from a window (SPEC 5.4, 8.1). `needed`: the token must carry one of these scopes; `counted`:
-- `check_token` has counted this request in the window already.
-- Returns a word; with 'ok' also remaining, reset, scopes of the token, scopes of the grant; with 'rate_limited' also reset
-- and retry.
local function admit(user, grant, family, access, window, needed, limit, period, now, counted)
  if redis.call('HGET', user, 'status') ~= 'active' then return 'invalid_token' end
  local scope = redis.call('GET', access)
  if not scope then return 'invalid_token' end
  local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'last_used_at')
  local line = redis.call('HMGET', family, 'epoch', 'revoked', 'scope')
  if not line[1] or line[1] ~= given[1] or line[2] or given[3] then return 'invalid_token' end
  if scope == '1' then
    scope = line[3]
  elseif string.sub(scope, 1, 1) == '@' then
    return 'invalid_token'  -- it is for an API
  end

  local carried = false
  for name in string.gmatch(needed, '%S+') do
    if has_scope(scope, name) and has_scope(given[2], name) then carried = true end
  end
  if not carried then return 'insufficient_scope' end

  local admitted, remaining, reset, retry = take_window(window, limit, period, now, counted)
  if not admitted then return 'rate_limited', reset, retry end
  -- The last use is written at most once a minute, so that most reads do not write.
  if now - tonumber(given[4] or '0') >= 60000 then redis.call('HSET', grant, 'last_used_at', int(now)) end
  return 'ok', remaining, reset, scope, given[2]
end
