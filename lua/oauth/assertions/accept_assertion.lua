--- Connect an app for a person whom an issuer of assertions names, and issue an access token. (RFC 7523 2.1)
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
--- KEYS[13] redeemed: the mark of the assertion
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] client
--- ARGV[3] email: the address that the issuer names
--- ARGV[4] issuer
--- ARGV[5] kept (number): ms that the assertion is known as used
--- ARGV[6] implied: '1' if the issuer's word is the consent
--- ARGV[7] scope: those of APIs qualified
--- ARGV[8] spend_limit: micro-dollars a month of an app that may now spend, or empty
--- ARGV[9] api: the API that the access token is for, 'mcp', or empty
--- ARGV[10] lasts (number): lifetime of the access token, ms
--- ARGV[11] jkt: the key that the access token is bound to, or empty
--- ARGV[12] fresh_epoch
--- ARGV[13] access_ttl (number): ms
--- ARGV[14] prefix: prefix of the person's keys, up to the noun
--- ARGV[15] shard: prefix of the shard's keys, up to 'app:'
--- ARGV[16] most_apps (number): of one person
--- ARGV[17] family_id
--- ARGV[18] most_families (number): of one person and app
--- ARGV[19] allowed: the groups whose members may use the app, one in each line; empty for everybody
--- @reply unknown
--- @reply kept_out
--- @reply not_allowed
--- @reply left_out
--- @reply used
--- @reply full
--- @reply ok connected scope api budgets
--- @derives prefix shard
--- @durable
--- @include "grant"
--- @include "resource"
--- @include "issue"
--- @include "places"
--- @include "families"
--- @include "budgets"
--- @include "audit"
--- @include "groups"
--- @include "left_out"

-- Whoever only claims an address is not its person, and the index may name somebody who had it before.
local person = redis.call('HMGET', user, 'status', 'email', 'verified', kept_out_field(client))
if person[1] ~= 'active' or person[2] ~= email or person[3] ~= '1' then return {'unknown'} end
if person[4] then return {'kept_out'} end
if not in_groups(user, allowed) then return {'not_allowed'} end
local now = now_ms()
local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'issuer', 'left_out', 'spend_limit',
  'issuer_limit')
-- An issuer cannot undo a disconnection, whoever made it: it may not have been trusted here at that time.
if given[3] then return {'kept_out'} end
local before = given[1] and given[2] or ''
scope = without(scope, given[5] or '')
if scope == '' then return {'left_out'} end
if implied == '' then
  -- What an issuer gave is no word of the person.
  scope = given[4] and '' or intersect(scope, before)
  if scope == '' then return {'not_allowed'} end
end
if redis.call('EXISTS', redeemed) == 1 then return {'used'} end
if not given[1] and not has_place(user, due, outbox, member, prefix, shard, most_apps, access_ttl, now) then
  return {'full'}
end

redis.call('SET', redeemed, '1', 'PX', int(kept))
local epoch, connected = open_grant(
  user, grant, app_users, {docs, meta, index, usage}, due, outbox, client, member, scope, scope,
  fresh_epoch, now)
if not covers(before, scope) then
  -- The person sees who gave the app what it has.
  redis.call('HSET', grant, 'issuer', issuer)
  record(audit, 'app_connected_by_issuer', client, '', '')
  if has_scope(scope, 'credits:spend') and not has_scope(before, 'credits:spend') then
    -- An earlier limit may be the person's own.
    if not given[6] or tonumber(given[6]) > tonumber(spend_limit) then
      redis.call('HSET', grant, 'spend_limit', spend_limit, 'issuer_limit', spend_limit)
    end
  end
elseif spend_limit ~= '' and given[4] == issuer and given[7] and given[6] == given[7] and
    tonumber(spend_limit) < tonumber(given[7]) then
  -- The operator has lowered what the issuer gives, and the person has not set a limit of their own.
  redis.call('HSET', grant, 'spend_limit', spend_limit, 'issuer_limit', spend_limit)
end
if list_family(grant, prefix .. 'family:', family_id, epoch, most_families, access_ttl, now) > 0 then
  record(audit, 'tokens_crowded_out', client, '', '')
end
local names = names_at(scope, api)
-- Without a refresh token the family ends with its token, a little later for what a call in progress is charged.
issue_tokens(family, access, 0, scope, access_row(api, names, now), epoch, lasts + 60000, access_ttl, lasts, 0, false, now,
  jkt)
if api ~= '' then redis.call('HSET', family, 'api', api) end
redis.call('HSET', grant, 'last_used_at', int(now))
local spends = (api == '' or api == 'mcp') and has_scope(scope, 'credits:spend')
return {'ok', connected, names, api ~= '' and api_token_fields(grant, api, now, now + lasts) or {},
  spends and budgets_told(redis.call('HMGET', grant, unpack(BUDGET_FIELDS)), 1, now) or {}}
