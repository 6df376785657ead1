--- Revoke an access token, or a refresh token with its whole family. (SPEC 4.5, RFC 7009 2.1)
--- KEYS[1] presented: the window of the string presented
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] audit
--- KEYS[7] outbox
--- KEYS[8] user
--- ARGV[1] kind: access or refresh
--- ARGV[2] client
--- ARGV[3] limit (number)
--- ARGV[4] period (number): ms
--- ARGV[5] member: the person in the lists of the shard
--- ARGV[6] generation (number): of the token presented
--- ARGV[7] authenticated: '1' if the app authenticated, as far as its kind can; empty: any holder
--- @reply rate_limited reset retry
--- @reply ok remaining reset
--- @durable
--- @reserve
--- @include "window"
--- @include "audit"
--- @include "announce"

local now = now_ms()
-- The figures depend only on the presented string, so that they do not reveal the outcome.
local admitted, remaining, reset, retry = take_window(presented, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end

local line = redis.call('HMGET', family, 'epoch', 'revoked', 'generation')
local given = redis.call('HMGET', grant, 'epoch', 'revoked_at')
local live = line[1] and not line[2] and line[1] == given[1] and not given[2]
local ended = false
if kind == 'refresh' then
  -- A superseded token proves nothing: a finder of one in an old log or backup must not end the app's access.
  local counts = authenticated == '1' or line[3] and generation >= tonumber(line[3])
  -- The row keeps its expiry, because presenting the token later is a replay (SPEC 3.1).
  if line[1] and not line[2] and counts then
    redis.call('HSET', family, 'revoked', 'revoked')
    ended = live
  end
elseif redis.call('DEL', access) == 1 then
  ended = live
end
if ended then
  take_window(window, limit, period, now)
  if kind == 'refresh' then
    record(audit, 'tokens_revoked', client, '', '')
    if authenticated == '' then announce(user, outbox, 'tokens.revoked', client, member, 'token_revoked', now) end
  end
end
return {'ok', remaining, reset}
