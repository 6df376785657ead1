--- @include "connected"
--- @include "due"
--- @include "epoch"
--- @include "now"
--- @include "remembered"
--- @include "scope"
-- Makes the grant live and ends a grace window, whatever the scopes (SPEC 3.1). Of the scopes `asked` it has those in
-- `ticked` from then on. Others stay as they were, and are gone where the app was not connected: what a person took back
-- does not return with something else.
-- `kept` lists the four keys of hosted data, the documents first; `member` is the person in the lists of the shard.
-- Returns the epoch that tokens are born in, and whether the app was not connected before: '1' or '0'.
local function open_grant(user, grant, app_users, kept, due, outbox, client, member, asked, ticked, fresh_epoch,
    now)
  local row = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'scope')
  local epoch = row[1]
  local connects = not epoch or row[2]
  local granted = not connects and row[3] or ''
  if connects then
    epoch = fresh_epoch
    redis.call('HSET', grant, 'epoch', epoch, 'connected_at', int(now))
    redis.call('HDEL', grant, 'revoked_at', 'last_used_at', 'app_deleted', 'grown_at', 'raised')
    redis.call('PERSIST', grant)
    forget_remembered(grant)
    for _, key in ipairs(kept) do redis.call('PERSIST', key) end
    take_off_due(user, due, outbox, kept[1], client, member)
  end
  -- Like a new connection, for who takes the account back.
  if not connects and not covers(granted, ticked) then redis.call('HSET', grant, 'grown_at', int(now)) end
  local scope = decided_scopes(granted, asked, ticked)
  redis.call('HSET', grant, 'scope', scope)
  enter_app(user, client, scope)
  redis.call('SADD', app_users, member)
  -- Of a deleted app the list ends. What a server connects that has not heard of it yet stays in sight.
  redis.call('PERSIST', app_users)
  return epoch, connects and '1' or '0'
end

-- The app is disconnected: every token dies, and grant and hosted data, the keys in `kept`, end with the grace window.
-- The app is told, now and, if there are documents, when those have ended.
local function end_grant(user, grant, kept, due, outbox, client, member, reason, fresh_epoch, grace, now)
  kill_pair(grant, fresh_epoch)
  redis.call('HSET', grant, 'revoked_at', int(now))
  redis.call('PEXPIREAT', grant, int(now + grace))
  for _, key in ipairs(kept) do redis.call('PEXPIREAT', key, int(now + grace)) end
  if redis.call('EXISTS', kept[1]) == 1 then put_due(due, client, member, now + grace) end
  announce(user, outbox, 'grant.revoked', client, member, reason, now)
end
