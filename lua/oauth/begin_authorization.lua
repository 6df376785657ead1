--- Begin an authorization: a code at once if consent is remembered, otherwise a pending request. (SPEC 4.1)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] request
--- KEYS[5] code
--- KEYS[6] window
--- KEYS[7] outbox
--- ARGV[1] scope: the requested scopes
--- ARGV[2] redirect_uri
--- ARGV[3] challenge: the S256 code challenge, or empty
--- ARGV[4] state
--- ARGV[5] always_ask: '1' if remembered consent must not count
--- ARGV[6] request_ttl (number): ms
--- ARGV[7] code_ttl (number): ms
--- ARGV[8] idle (number): ms
--- ARGV[9] terms: of the present registration
--- ARGV[10] place: the field of the grant that remembers consent to this redirect URI; empty for a device
--- ARGV[11] limit (number)
--- ARGV[12] period (number): ms
--- ARGV[13] client
--- ARGV[14] fresh (number): how long ago the sign-in may have been, in ms; -1: no age is enough
--- ARGV[15] since (number): time of a sign-in for this request, which counts whatever its age; 0: there was none
--- ARGV[16] since_lasts (number): ms that it counts
--- ARGV[17] methods: ways to sign in of which one is required, or empty
--- ARGV[18] nonce: of the ID token, or empty
--- ARGV[19] acr: requested levels, separated by commas, or empty
--- ARGV[20] fresh_sid: public id for a session that has none
--- ARGV[21] mode: how the app wants its answer: form_post, or empty
--- ARGV[22] pushed: '1' for a request that was pushed or made by a device, of which the person may have other pages
--- ARGV[23] api: the API that the app wants to call, or empty
--- ARGV[24] jkt: the key that the code is bound to, or empty
--- ARGV[25] member: the person in the lists of the shard
--- ARGV[26] details: the requested budgets, lines 'type limit period models', or empty
--- ARGV[27] allowed: the groups whose members may use the app, one in each line; empty for everybody
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply sign_in
--- @reply outsider email email_verified name picture preferences
--- @reply step_up email email_verified name picture preferences
--- @reply remembered
--- @reply page email email_verified name picture preferences granted spend_limit groups details paused budgeted ended
--- @include "session"
--- @include "scope"
--- @include "remembered"
--- @include "window"
--- @include "signed_in"
--- @include "groups"
--- @include "connected"
--- @include "spending"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
-- Each request leaves a row for a while, so the window keeps anybody from filling the store.
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end

local born = redis.call('HMGET', session, 'created_at', 'method')
-- The earliest sign-in that this request accepts. Without an age and a sign-in of its own, any.
local earliest = 0
if fresh >= 0 or since > 0 then
  earliest = fresh >= 0 and now - fresh or math.huge
  if since > 0 and now - since <= since_lasts then earliest = math.min(earliest, since) end
  if tonumber(born[1]) < earliest then return {'sign_in'} end
end
if not in_groups(user, allowed) then
  local email, verified, name, picture, preferences = profile(user)
  return {'outsider', email, verified, name, picture, preferences}
end
if methods ~= '' and not has_scope(methods, born[2] or 'pwd') then
  local email, verified, name, picture, preferences = profile(user)
  return {'step_up', email, verified, name, picture, preferences}
end

local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'spend_limit', place, 'paused_at')
local granted = given[1] and not given[3] and given[2] or ''
local paused = granted ~= '' and given[6] or ''
-- The person may have narrowed the grant at another redirect URI since, or paused the app.
if always_ask ~= '1' and given[1] and not given[3] and paused == '' and covers(granted, scope) and
    covers(remembered_scopes(given[5]), scope) then
  redis.call('HSET', code, 'redirect_uri', redirect_uri, 'scope', scope, 'challenge', challenge, 'epoch', given[1],
    'terms', terms)
  local openid = has_scope(scope, 'openid')
  if openid then redis.call('HSET', code, 'nonce', nonce) end
  if api ~= '' then redis.call('HSET', code, 'api', api) end
  if openid or api ~= '' or methods ~= '' then
    redis.call('HSET', code, 'signed',
      signed_in(user, session, client, fresh_sid, acr, scope, outbox, member, now))
  end
  if jkt ~= '' then redis.call('HSET', code, 'jkt', jkt) end
  redis.call('PEXPIREAT', code, int(now + code_ttl))
  return {'remembered'}
end

-- All pages of such a request have one row.
if pushed ~= '' then redis.call('DEL', request) end
redis.call('HSET', request, 'redirect_uri', redirect_uri, 'scope', scope, 'challenge', challenge, 'state', state,
  'terms', terms)
if place ~= '' then redis.call('HSET', request, 'place', place) end
if nonce ~= '' then redis.call('HSET', request, 'nonce', nonce) end
if acr ~= '' then redis.call('HSET', request, 'acr', acr) end
if mode ~= '' then redis.call('HSET', request, 'mode', mode) end
-- The decision may come from another session of the person.
if earliest > 0 then redis.call('HSET', request, 'earliest', int(earliest)) end
if methods ~= '' then redis.call('HSET', request, 'methods', methods) end
if api ~= '' then redis.call('HSET', request, 'api', api) end
if jkt ~= '' then redis.call('HSET', request, 'jkt', jkt) end
if details ~= '' then redis.call('HSET', request, 'details', details) end
if paused ~= '' then redis.call('HSET', request, 'paused', '1') end
redis.call('PEXPIREAT', request, int(now + request_ttl))
local email, verified, name, picture, preferences = profile(user)
local groups = has_scope(scope, 'groups') and redis.call('HGET', user, 'groups') or ''
-- What the person ended begins again with a page.
local ended = (given[3] or redis.call('HEXISTS', user, kept_out_field(client)) == 1) and '1' or ''
return {'page', email, verified, name, picture, preferences, granted, given[4] or '', groups, details, paused,
  still_budgeted(grant, granted, scope, details), ended}
