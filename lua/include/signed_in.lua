--- @include "now"
--- @include "scope"
--- @include "ended"
-- What an ID token says of the sign-in that it comes from, in one text: the session's public id, the time of the sign-in
-- (seconds), how the person signed in, and the requested levels (`acr`), as `store/oauth/sign_in.py` reads it. Codes and
-- families have it if they come from a request with `openid`, for an API, or for certain ways to sign in.

local MOST_FIELDS = 520  -- of a session: as many apps as one person may connect, and its own

-- Forgets one app in a session that would otherwise know too many, one that is not connected any more if there is one. That
-- app hears that the session has ended.
local function forget_one(user, session, sid, client, outbox, member, now)
  local chosen
  for _, other in ipairs(apps_in(session)) do
    if other ~= client then
      chosen = other
      if redis.call('HEXISTS', user, 'app:' .. other) == 0 then break end
    end
  end
  write_end(outbox, member, sid, {chosen}, 'crowded', now)
  redis.call('HDEL', session, 'rp:' .. chosen)
end

-- The text for an app. With `openid`, notes in the session that the app knows it: signing out tells the app.
-- `fresh_sid` becomes the public id of a session that has none: the session's own id moves, and is nobody's business.
-- Without `openid`, or with an empty `fresh_sid`, the app learns no id of the session.
local function signed_in(user, session, client, fresh_sid, acr, scope, outbox, member, now)
  local named = fresh_sid ~= '' and has_scope(scope, 'openid')
  if named then
    redis.call('HSETNX', session, 'sid', fresh_sid)
    if redis.call('HSET', session, 'rp:' .. client, '') == 1 and redis.call('HLEN', session) > MOST_FIELDS then
      forget_one(user, session, redis.call('HGET', session, 'sid'), client, outbox, member, now)
    end
  end
  local row = redis.call('HMGET', session, 'sid', 'created_at', 'method')
  local at = int(math.floor(tonumber(row[2]) / 1000))
  return table.concat({named and row[1] or '-', at, row[3] or 'pwd', acr}, ' ')
end

-- Whether the sign-in in this text, or in none, was one of the ways `stepped`.
local function has_step(signed, stepped)
  return has_scope(stepped, string.match(signed or '', '^%S+ %S+ (%S+)') or '')
end

-- The fields of an ID token in a script's answer: none without `openid` or without a sign-in.
local function id_token_fields(user, scope, signed, nonce)
  if not signed or not has_scope(scope, 'openid') then return {} end
  local row = redis.call('HMGET', user, 'email', 'verified', 'name', 'picture')
  local groups = has_scope(scope, 'groups') and redis.call('HGET', user, 'groups') or ''
  return {signed, nonce or '', scope, row[1], row[2] or '0', row[3], row[4] or '', groups}
end
