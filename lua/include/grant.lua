--- @include "connected"
--- @include "due"
--- @include "epoch"
--- @include "now"
--- @include "remembered"
--- @include "scope"
-- Makes the grant live and ends a grace window, whatever the scopes (SPEC 3.1). Of the requested scopes (`asked`) the grant
-- has those in `ticked` from now on. Other scopes stay unchanged; if the app was not connected, they end, so a withdrawn
-- scope does not return with a new consent.
-- `kept` lists the four keys of hosted data, the documents first; `member` is the person in the lists of the shard.
-- Returns the epoch of new tokens, and whether the app is newly connected: '1' or '0'.
local function open_grant(user, grant, app_users, kept, due, outbox, client, member, asked, ticked, fresh_epoch,
    now)
  local row = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'scope')
  local epoch = row[1]
  local connects = not epoch or row[2]
  local granted = not connects and row[3] or ''
  if connects then
    epoch = fresh_epoch
    redis.call('HSET', grant, 'epoch', epoch, 'connected_at', int(now))
    redis.call('HDEL', grant, 'revoked_at', 'paused_at', 'resumed', 'last_used_at', 'app_deleted', 'grown_at', 'raised', 'delegated', 'issuer', 'left_out',
      'budget:credits', 'used:credits', 'budget:llm-inference', 'used:llm-inference')
    redis.call('PERSIST', grant)
    forget_remembered(grant)
    for _, key in ipairs(kept) do redis.call('PERSIST', key) end
    take_off_due(user, due, outbox, kept[1], client, member)
  end
  -- Counts as a new connection if the account is taken back.
  if not connects and not covers(granted, ticked) then redis.call('HSET', grant, 'grown_at', int(now)) end
  redis.call('HDEL', user, kept_out_field(client))
  local scope = decided_scopes(granted, asked, ticked)
  redis.call('HSET', grant, 'scope', scope)
  enter_app(user, client, scope)
  redis.call('SADD', app_users, member)
  -- The list of a deleted app expires. If a server that does not know of the deletion connects the app, it must stay listed.
  redis.call('PERSIST', app_users)
  return epoch, connects and '1' or '0'
end

-- Disconnects the app: ends every token; grant and hosted data, the keys in `kept`, end with the grace window. The app gets
-- an event now and, if there are documents, another when they have ended.
local function end_grant(user, grant, kept, due, outbox, client, member, reason, fresh_epoch, grace, now)
  kill_pair(grant, fresh_epoch)
  redis.call('HSET', grant, 'revoked_at', int(now))
  redis.call('PEXPIREAT', grant, int(now + grace))
  for _, key in ipairs(kept) do redis.call('PEXPIREAT', key, int(now + grace)) end
  if redis.call('EXISTS', kept[1]) == 1 then put_due(due, client, member, now + grace) end
  announce(user, outbox, 'grant.revoked', client, member, reason, now)
end
