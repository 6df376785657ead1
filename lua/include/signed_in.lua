--- @include "now"
--- @include "scope"
-- What an ID token says of the sign-in that it comes from, in one text: the session's public id, the time of the sign-in
-- (seconds), how the person signed in, and the requested levels (`acr`), as `store/oauth/sign_in.py` reads it. Codes and
-- families have it if they come from a request with `openid` or for an API.

-- The text for an app. With `openid`, notes in the session that the app knows it: signing out tells the app.
-- `fresh_sid` becomes the public id of a session that has none: the session's own id moves, and is nobody's business.
-- Without `openid` the app learns no id of the session.
local function signed_in(session, client, fresh_sid, acr, scope)
  local openid = has_scope(scope, 'openid')
  if openid then
    redis.call('HSETNX', session, 'sid', fresh_sid)
    redis.call('HSET', session, 'rp:' .. client, '')
  end
  local row = redis.call('HMGET', session, 'sid', 'created_at', 'method')
  local at = int(math.floor(tonumber(row[2]) / 1000))
  return table.concat({openid and row[1] or '-', at, row[3] or 'pwd', acr}, ' ')
end

-- The fields of an ID token in a script's answer: none without `openid` or without a sign-in.
local function id_token_fields(user, scope, signed, nonce)
  if not signed or not has_scope(scope, 'openid') then return {} end
  local row = redis.call('HMGET', user, 'email', 'verified', 'name', 'picture')
  local groups = has_scope(scope, 'groups') and redis.call('HGET', user, 'groups') or ''
  return {signed, nonce or '', scope, row[1], row[2] or '0', row[3], row[4] or '', groups}
end
