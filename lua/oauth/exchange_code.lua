--- Exchange an authorization code for its family's first tokens; a used code kills that family. (SPEC 3.2, 4.3)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] code
--- KEYS[4] family
--- KEYS[5] access
--- KEYS[6] window
--- KEYS[7] audit
--- KEYS[8] outbox
--- ARGV[1] client
--- ARGV[2] redirect_uri: sent by the app
--- ARGV[3] challenge: base64url(SHA-256(code_verifier)), or empty without a verifier
--- ARGV[4] registered: the app's registered scopes, those of APIs qualified
--- ARGV[5] access_ttl (number): ms
--- ARGV[6] refresh_ttl (number): ms
--- ARGV[7] limit (number)
--- ARGV[8] period (number): ms
--- ARGV[9] terms: of the present registration
--- ARGV[10] member: the person in the lists of the shard
--- ARGV[11] lifetime (number): ms after which the family ends, rotated or not; 0: never
--- ARGV[12] prefix: prefix of the person's keys, up to the noun
--- ARGV[13] family_id
--- ARGV[14] most (number): families of one person and app
--- ARGV[15] target: the resource of the access token: an API, 'own', or empty for that of the authorization
--- ARGV[16] apis: the APIs that the app may have tokens for, each with the lifetime of its tokens (ms)
--- ARGV[17] jkt: the key that the access token is bound to, or empty
--- ARGV[18] binds: '1' if refresh tokens are bound to the key too
--- ARGV[19] details: the budgets that the token request names, lines 'type limit period ends models', or empty
--- ARGV[20] demanded: '*' if the app demands a second step, otherwise the scopes that do, or empty
--- ARGV[21] stepped: the ways to sign in that have a second step
--- @reply dead
--- @reply replayed
--- @reply rate_limited reset retry
--- @reply redirect_mismatch remaining reset
--- @reply verifier_mismatch remaining reset
--- @reply key_mismatch remaining reset
--- @reply invalid_target remaining reset
--- @reply scope_withdrawn remaining reset
--- @reply invalid_details remaining reset
--- @reply ok remaining reset scope person api budgets
--- @derives prefix
--- @durable
--- @include "scope"
--- @include "resource"
--- @include "signed_in"
--- @include "window"
--- @include "issue"
--- @include "families"
--- @include "budgets"
--- @include "audit"
--- @include "touch"
--- @include "announce"
--- @include "reserve"
--- @include "left_out"

local status = redis.call('HGET', user, 'status')
if not status then return {'dead'} end
-- The family takes the id of its code, so an existing family shows that the code was used (RFC 6749 4.1.2).
if redis.call('EXISTS', family) == 1 then
  -- Whoever has a stolen code but not the key of its tokens ends nothing.
  local bound, since = family_key(redis.call('HGET', family, 'jkt'))
  if bound and since == 0 and bound ~= jkt then return {'dead'} end
  use_reserve(family)
  if redis.call('HSETNX', family, 'revoked', 'replay') == 1 then
    record(audit, 'code_replayed', client, '', '')
    local given = redis.call('HMGET', grant, 'epoch', 'revoked_at')
    -- The tokens of an ended grant or an earlier epoch are dead already, and that was announced.
    if not given[2] and given[1] and given[1] == redis.call('HGET', family, 'epoch') then
      announce(user, outbox, 'tokens.revoked', client, member, 'code_replayed', now_ms())
    end
  else
    touch(family)
  end
  return {'replayed'}
end
if status ~= 'active' then return {'dead'} end
local row = redis.call('HMGET', code, 'redirect_uri', 'scope', 'challenge', 'epoch', 'terms', 'signed', 'nonce', 'api',
  'jkt')
local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', unpack(BUDGET_FIELDS))
if not row[1] or row[4] ~= given[1] or given[3] or row[5] ~= terms then return {'dead'} end
local sid = string.match(row[6] or '', '^%S+')
if sid and redis.call('EXISTS', prefix .. 'session:' .. sid .. ':ended') == 1 then return {'dead'} end

local now = now_ms()
local admitted, remaining, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
-- A failed check does not use up the code: it stays for the app that can pass.
if row[1] ~= redirect_uri then return {'redirect_mismatch', remaining, reset} end
if row[3] ~= challenge then return {'verifier_mismatch', remaining, reset} end
-- RFC 9449 10: the request named the key.
if row[9] and row[9] ~= jkt then return {'key_mismatch', remaining, reset} end
-- Only a code for an API has scopes of one. The others take no step for it.
local authorized, api, ttl = row[8], '', access_ttl
if authorized or target ~= '' then
  api, ttl = resource_of(target, authorized, apis, access_ttl)
  if not api or names_at(row[2], api) == '' then return {'invalid_target', remaining, reset} end
end
-- The demand may be younger than the consent page, or than the code.
if demanded ~= '' and not has_step(row[6], stepped) then
  registered = demanded == '*' and '' or without(registered, demanded)
end
local scope = intersect(intersect(row[2], given[2]), registered)
local names = authorized and names_at(scope, api) or scope
if names == '' then return {'scope_withdrawn', remaining, reset} end
-- Budgets are for Latchkey's own credits.
local spends = (api == '' or api == 'mcp') and has_scope(scope, 'credits:spend')
if details ~= '' and not (spends and are_granted(details, given, 4)) then return {'invalid_details', remaining, reset} end

redis.call('DEL', code)
if list_family(grant, prefix .. 'family:', family_id, row[4], most, access_ttl, now) > 0 then
  record(audit, 'tokens_crowded_out', client, '', '')
end
issue_tokens(family, access, 0, scope, access_row(api, names, now), row[4], refresh_ttl, access_ttl, ttl, lifetime, false,
  now, jkt)
-- RFC 9449 5: only its key makes a refresh token of a public app worth anything.
if binds ~= '' and jkt ~= '' then redis.call('HSET', family, 'jkt', jkt) end
if row[6] then redis.call('HSET', family, 'signed', row[6]) end
-- A refresh may name it, also if this token is for another resource. (RFC 8707 2.2)
if authorized then redis.call('HSET', family, 'api', authorized) end
redis.call('HSET', grant, 'last_used_at', int(now))
return {'ok', remaining, reset, names,
  id_token_fields(user, authorized and own_scopes(scope) or scope, row[6], row[7]),
  api ~= '' and api_token_fields(grant, api, now, now + ttl, row[6]) or {}, spends and budgets_told(given, 4, now) or {}}
