--- Grant and issue tokens for the operator, as a consent to all scopes and an exchange would.
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] app_users
--- KEYS[6] audit
--- KEYS[7] docs
--- KEYS[8] meta
--- KEYS[9] index
--- KEYS[10] usage
--- KEYS[11] due
--- KEYS[12] outbox
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] client
--- ARGV[3] scope: those of APIs qualified
--- ARGV[4] fresh_epoch
--- ARGV[5] access_ttl (number): ms
--- ARGV[6] refresh_ttl (number): ms
--- ARGV[7] lifetime (number): ms after which the family ends, rotated or not; 0: never
--- ARGV[8] prefix: prefix of the person's keys, up to the noun
--- ARGV[9] shard: prefix of the shard's keys, up to 'app:'
--- ARGV[10] most_apps (number): of one person
--- ARGV[11] family_id
--- ARGV[12] most_families (number): of one person and app
--- ARGV[13] api: the API that the access token is for, or empty
--- ARGV[14] row_ttl (number): lifetime of the access token, ms
--- ARGV[15] jkt: the key that the access token is bound to, or empty
--- ARGV[16] binds: '1' if refresh tokens are bound to the key too
--- @reply not_found
--- @reply full
--- @reply ok connected scope api
--- @derives prefix shard
--- @durable
--- @include "grant"
--- @include "resource"
--- @include "issue"
--- @include "places"
--- @include "families"
--- @include "audit"

if redis.call('HGET', user, 'status') ~= 'active' then return {'not_found'} end
local now = now_ms()
if redis.call('EXISTS', grant) == 0 and
    not has_place(user, due, outbox, member, prefix, shard, most_apps, access_ttl, now) then
  return {'full'}
end
local epoch, connected = open_grant(
  user, grant, app_users, {docs, meta, index, usage}, due, outbox, client, member, scope, scope,
  fresh_epoch, now)
if list_family(grant, prefix .. 'family:', family_id, epoch, most_families, access_ttl, now) > 0 then
  record(audit, 'tokens_crowded_out', client, '', '')
end
local names = names_at(scope, api)
issue_tokens(family, access, 0, scope, access_row(api, names, now), epoch, refresh_ttl, access_ttl, row_ttl, lifetime,
  false, now, jkt)
-- As in an exchange: see exchange_code.lua.
if binds ~= '' and jkt ~= '' then redis.call('HSET', family, 'jkt', jkt) end
if api ~= '' then redis.call('HSET', family, 'api', api) end
record(audit, 'token_minted', client, '', '')
return {'ok', connected, names, api ~= '' and api_token_fields(grant, api, now, now + row_ttl) or {}}
