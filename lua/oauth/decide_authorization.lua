--- Carry out the person's decision on a pending request. (SPEC 4.2, 3.1)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] request
--- KEYS[4] grant
--- KEYS[5] code
--- KEYS[6] app_users
--- KEYS[7] audit
--- KEYS[8] window
--- KEYS[9] docs
--- KEYS[10] meta
--- KEYS[11] index
--- KEYS[12] usage
--- KEYS[13] due
--- KEYS[14] outbox
--- KEYS[15] mails: window of mails about higher spending
--- KEYS[16] undos
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] client
--- ARGV[3] decision: allow or deny
--- ARGV[4] scopes: plain names of the ticked scopes, or '*' for all requested ones
--- ARGV[5] fresh_epoch
--- ARGV[6] code_ttl (number): ms
--- ARGV[7] idle (number): ms
--- ARGV[8] limit (number)
--- ARGV[9] period (number): ms
--- ARGV[10] address
--- ARGV[11] agent
--- ARGV[12] terms: of the present registration
--- ARGV[13] spend_limit: micro-dollars a month, 'none', or '' for no change
--- ARGV[14] mails_most (number)
--- ARGV[15] mails_period (number): ms
--- ARGV[16] prefix: prefix of the person's keys, up to the noun
--- ARGV[17] shard: prefix of the shard's keys, up to 'app:'
--- ARGV[18] most (number): apps of one person
--- ARGV[19] access_ttl (number): ms
--- ARGV[20] raise_kept (number): ms that the previous spending limit is remembered
--- ARGV[21] fresh_sid: public id for a session that has none; empty for a device, which learns none
--- ARGV[22] amounts: of budgets that the person set, lines 'type limit'
--- ARGV[23] lasts (number): ms until the budgets end; 0 for no end
--- ARGV[24] allowed: the groups whose members may use the app, one in each line; empty for everybody
--- ARGV[25] unseen: '1' if the person saw no page, because the operator's own app only signs them in
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply gone remaining reset
--- @reply invalid_scope remaining reset redirect_uri scope api granted spend_limit email email_verified name picture preferences groups details paused budgeted
--- @reply full remaining reset
--- @reply denied remaining reset redirect_uri state mode
--- @reply allowed remaining reset redirect_uri state mode connected told
--- @derives prefix shard
--- @durable
--- @include "session"
--- @include "scope"
--- @include "resource"
--- @include "window"
--- @include "grant"
--- @include "remembered"
--- @include "places"
--- @include "spending"
--- @include "allowance"
--- @include "budgets"
--- @include "pauses"
--- @include "left_out"
--- @include "audit"
--- @include "signed_in"
--- @include "groups"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
-- What the page needs to ask again: nothing was ticked, and the request stays.
local function nothing_ticked(redirect_uri, scope, api, details, remaining, reset)
  local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'spend_limit', 'paused_at')
  local granted = given[1] and not given[3] and given[2] or ''
  local paused = granted ~= '' and given[5] or ''
  if paused ~= '' then redis.call('HSET', request, 'paused', '1') end
  local email, verified, name, picture, preferences = profile(user)
  local groups = has_scope(scope, 'groups') and redis.call('HGET', user, 'groups') or ''
  return {'invalid_scope', remaining, reset, redirect_uri, scope, api or '', granted, given[4] or '',
    email, verified, name, picture, preferences, groups, details or '', paused,
    still_budgeted(grant, granted, scope, details or '')}
end

local admitted, remaining, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end

local asked = redis.call('HMGET', request, 'redirect_uri', 'scope', 'challenge', 'state', 'terms', 'place',
  'nonce', 'acr', 'mode', 'earliest', 'methods', 'api', 'jkt', 'details', 'paused')
local mode, api, device = asked[9] or '', asked[12], fresh_sid == ''
-- If the registration has changed since, the checks of the request are void.
if not asked[1] or asked[5] ~= terms then return {'gone', remaining, reset} end
-- Somebody may have taken the person out of the groups since.
if decision == 'allow' and not in_groups(user, allowed) then return {'gone', remaining, reset} end
-- The page was shown to a sign-in that was new and strong enough. Another session of the person may be neither.
local born = redis.call('HMGET', session, 'created_at', 'method')
if tonumber(born[1]) < tonumber(asked[10] or '0') or (asked[11] and not has_scope(asked[11], born[2] or 'pwd')) then
  return {'gone', remaining, reset}
end

if unseen == '1' then
  -- The person may have ended or paused the app a moment ago, and nobody else takes that back.
  local given = redis.call('HMGET', grant, 'revoked_at', 'paused_at')
  local kept_out = redis.call('HEXISTS', user, kept_out_field(client)) == 1
  if given[1] or given[2] or kept_out then return {'gone', remaining, reset} end
end

if decision ~= 'allow' then
  redis.call('DEL', request)
  record(audit, 'consent_denied', client, address, agent)
  return {'denied', remaining, reset, asked[1], asked[4], mode}
end

-- The code has only the ticked scopes, while grant and remembered consent keep scopes that were not requested.
local scope = asked[2]
if scopes ~= '*' then
  local ticked = picked(scope, scopes, api or '')
  if not ticked then return nothing_ticked(asked[1], scope, api, asked[14], remaining, reset) end
  -- `openid` is no checkbox: it is what signing in means.
  scope = intersect(scope, ticked .. ' openid')
  if scope == '' then return nothing_ticked(asked[1], asked[2], api, asked[14], remaining, reset) end
end
-- Without a scope of the API, what is left is for Latchkey itself.
if api and names_at(scope, api) == '' then api = false end
local before = allowance_of(grant)
-- An app with a place keeps it, even if the person has more apps than the present bound. The request stays, so the same page
-- works once a place is free.
if redis.call('EXISTS', grant) == 0 and
    not has_place(user, due, outbox, member, prefix, shard, most, access_ttl, now) then
  return {'full', remaining, reset}
end
-- Allowing a paused app resumes it if the page said so. An older page, from before the pause, leaves the pause.
local resumed = asked[15] and resume(grant, now)
local epoch, connected = open_grant(
  user, grant, app_users, {docs, meta, index, usage}, due, outbox, client, member, asked[2], scope,
  fresh_epoch, now)
if unseen == '' then
  -- What the person allows is theirs from now on, and what they leave out is out.
  redis.call('HDEL', grant, 'issuer', 'issuer_limit')
  note_left_out(grant, asked[2], scope)
end
-- A device asks each time.
if asked[6] then remember(grant, asked[6], asked[2], scope) end
if has_scope(scope, 'credits:spend') then
  set_spend_limit(grant, spend_limit)
  if asked[14] then
    grant_budgets(grant, asked[14], amounts, lasts, now)
    record(audit, 'budget_granted', client, address, agent)
  end
elseif has_scope(asked[2], 'credits:spend') then
  drop_budgets(grant)
end
redis.call('HSET', code, 'redirect_uri', asked[1], 'scope', scope, 'challenge', asked[3], 'epoch', epoch,
  'terms', terms)
local openid = has_scope(scope, 'openid')
if openid then redis.call('HSET', code, 'nonce', asked[7] or '') end
if api then redis.call('HSET', code, 'api', api) end
if openid or api or asked[11] then
  redis.call('HSET', code, 'signed',
    signed_in(user, session, client, fresh_sid, asked[8] or '', scope, outbox, member, now))
end
if asked[13] then redis.call('HSET', code, 'jkt', asked[13]) end
redis.call('PEXPIREAT', code, int(now + code_ttl))
redis.call('DEL', request)
if device then
  record(audit, 'device_allowed', client, address, agent)
else
  record(audit, 'consent_given', client, address, agent)
end
if resumed and connected == '0' then record(audit, 'app_resumed', client, address, agent) end
local after = allowance_of(grant)
note_growth(grant, before, after, raise_kept, now)
if before and after and before ~= after then record(audit, 'spend_limit_set', client, address, agent) end
local told = told_of_growth(user, undos, before, after, mails, mails_most, mails_period, now)
return {'allowed', remaining, reset, asked[1], asked[4], mode, connected, told}
