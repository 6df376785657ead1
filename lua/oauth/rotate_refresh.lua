--- Rotate a refresh token; a used or revoked one kills every token of the pair. (SPEC 3.1, 4.3)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access: of the generation after the one presented
--- KEYS[5] window
--- KEYS[6] audit
--- KEYS[7] outbox
--- ARGV[1] client
--- ARGV[2] generation (number): of the token presented
--- ARGV[3] wanted: plain names of the requested scopes, or empty for all of the family
--- ARGV[4] registered: the app's registered scopes, those of APIs qualified
--- ARGV[5] fresh_epoch
--- ARGV[6] retry_ms (number): how long the latest rotation is answered again (0: never)
--- ARGV[7] access_ttl (number): ms
--- ARGV[8] refresh_ttl (number): ms
--- ARGV[9] limit (number)
--- ARGV[10] period (number): ms
--- ARGV[11] member: the person in the lists of the shard
--- ARGV[12] lifetime (number): ms after which the family ends, rotated or not; 0: never
--- ARGV[13] target: the resource of the access token: an API, 'own', or empty for that of the authorization
--- ARGV[14] apis: the APIs that the app may have tokens for, each with the lifetime of its tokens (ms)
--- ARGV[15] jkt: the key that the access token is bound to, or empty
--- ARGV[16] binds: '1' if refresh tokens are bound to the key too
--- ARGV[17] details: the budgets that the token request names, lines 'type limit period ends models', or empty
--- ARGV[18] allowed: the groups whose members may use the app, one in each line; empty for everybody
--- ARGV[19] demanded: '*' if the app demands a second step, otherwise the scopes that do, or empty
--- ARGV[20] stepped: the ways to sign in that have a second step
--- @reply dead
--- @reply other_key
--- @reply outsider
--- @reply one_step
--- @reply replayed
--- @reply rate_limited reset retry
--- @reply invalid_target remaining reset
--- @reply invalid_scope remaining reset
--- @reply scope_withdrawn remaining reset
--- @reply invalid_details remaining reset
--- @reply ok remaining reset scope expires_in person api budgets
--- @durable
--- @include "scope"
--- @include "resource"
--- @include "signed_in"
--- @include "window"
--- @include "issue"
--- @include "budgets"
--- @include "epoch"
--- @include "audit"
--- @include "touch"
--- @include "announce"
--- @include "reserve"
--- @include "groups"
--- @include "left_out"

local status = redis.call('HGET', user, 'status')
if not status then return {'dead'} end
local line = redis.call('HMGET', family, 'generation', 'scope', 'epoch', 'revoked', 'born', 'signed', 'api',
  'jkt')
-- A family that made room for a later sign-in is over, like an expired one. That is no theft, so the pair's others live on.
if not line[1] or line[4] == 'crowded' then return {'dead'} end
-- RFC 9449 5. Comes before the search for replays: without the key, a stolen token ends nothing. A token from before the
-- family was bound is no bound token, so its replay counts: otherwise a thief could bind the family and never be noticed.
local bound, since = family_key(line[8])
if bound and generation >= since and bound ~= jkt then return {'other_key'} end
local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'paused_at', unpack(BUDGET_FIELDS))
local connected = given[1] and not given[3]
local current = tonumber(line[1])
local now = now_ms()

local revoked = line[4] or not connected or line[3] ~= given[1]
local own, successor = parts_of_row(redis.call('GET', access) or '')
-- A lost answer may be requested again: only for the latest rotation, if its successor was not used, revoked or old.
local again = not revoked and generation == current - 1 and retry_ms > 0 and successor ~= ''
if again then
  local _, issued = read_api_row(successor)
  local age = issued and now - issued or access_ttl - redis.call('PTTL', access)
  again = age >= 0 and age <= retry_ms
end
if again and own ~= jkt then
  -- The answer would be tokens of another key. An app with a secret may have several; of others it is a replay.
  if binds == '' then return {'other_key'} end
  again = false
end
if revoked or (generation < current and not again) then
  -- RFC 9700 4.14.2: the whole pair dies, because nobody can tell which of the two holders is the thief.
  -- A family of an earlier epoch causes this only once: a single old string must not keep a person out for ever.
  use_reserve(family)
  local first = redis.call('HSETNX', family, 'replayed', '1') == 1
  if connected and (first or line[3] == given[1]) then
    kill_pair(grant, fresh_epoch)
    announce(user, outbox, 'tokens.revoked', client, member, 'refresh_token_replayed', now)
  end
  if first then record(audit, 'refresh_replayed', client, '', '') else touch(family) end
  return {'replayed'}
end
if status ~= 'active' then return {'dead'} end
-- The family stays: the person may be in the group again tomorrow.
if not in_groups(user, allowed) then return {'outsider'} end
-- The family may be older than the demand, or come from the operator. It stays, and counts when the demand is taken back.
if demanded ~= '' and not has_step(line[6], stepped) then
  if demanded == '*' then return {'one_step'} end
  registered = without(registered, demanded)
end
-- A family older than the setting counts its lifetime from its first rotation under the setting.
local born = tonumber(line[5])
if lifetime > 0 and born and now >= born + lifetime then return {'dead'} end

local admitted, remaining, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
-- Only a family with an API has scopes of one. The others take no step for it.
local authorized, api, ttl = line[7], '', access_ttl
if authorized or target ~= '' then
  api, ttl = resource_of(target, authorized, apis, access_ttl)
  if not api or names_at(line[2], api) == '' then return {'invalid_target', remaining, reset} end
end
-- The budgets of a token with these scopes: they are for Latchkey's own credits.
local ours = api == '' or api == 'mcp'
local function told(scope)
  return ours and has_scope(scope, 'credits:spend') and budgets_told(given, 5, now) or {}
end
if details ~= '' and not (ours and are_granted(details, given, 5)) then return {'invalid_details', remaining, reset} end
-- An ID token has the person's profile, which a paused app does not get at userinfo either. (Core 12.2 lets it be missing.)
local function person(scope)
  return given[4] and {} or id_token_fields(user, authorized and own_scopes(scope) or scope, line[6])
end
if again then
  local of, issued, names = read_api_row(successor)
  -- A request for another resource is no repetition, and there is no second token.
  if (of or '') ~= api then return {'invalid_target', remaining, reset} end
  local left = redis.call('PTTL', access)
  -- The person may have withdrawn scopes since the first answer.
  local scope = (of or successor == '1') and line[2] or successor
  scope = intersect(intersect(scope, given[2]), registered)
  names = of and intersect(names, names_at(scope, of)) or scope
  if names == '' then return {'scope_withdrawn', remaining, reset} end
  return {'ok', remaining, reset, names, math.ceil(left / 1000),
    person(scope),
    of and api_token_fields(grant, of, issued, now + left, line[6]) or {}, told(scope)}
end
-- RFC 6749 6: a scope that was not granted originally is refused; a narrower one is for this access token only.
local asked = line[2]
if wanted ~= '' then asked = picked(line[2], wanted, authorized or '') end
if not asked or (authorized and names_at(asked, api) == '') then return {'invalid_scope', remaining, reset} end
local scope = intersect(intersect(asked, given[2]), registered)
local names = authorized and names_at(scope, api) or scope
if names == '' then return {'scope_withdrawn', remaining, reset} end
issue_tokens(family, access, generation + 1, line[2], access_row(api, names, now), line[3], refresh_ttl, access_ttl, ttl,
  lifetime, born, now, jkt)
-- An app that began without proofs may go on with them.
if binds ~= '' and jkt ~= '' and not bound then redis.call('HSET', family, 'jkt', jkt .. ' ' .. int(generation + 1)) end
redis.call('HSET', grant, 'last_used_at', int(now))
return {'ok', remaining, reset, names, math.floor(ttl / 1000),
  person(scope),
  api ~= '' and api_token_fields(grant, api, now, now + ttl, line[6]) or {}, told(scope)}
