--- @include "now"
-- Apps hear that a session has ended if they got an ID token in it: fields `rp:<client>` of its row. The script that ends a
-- session writes one event for all of them to the outbox of the shard, in the same step; the relay makes a delivery for
-- each app that has a URL for it (store/webhooks/outbox.py). A session that expires has no script, so no app hears of it.
local READ_AT_MOST = 400  -- sessions; no setting allows half as many
local CODE_LASTS = 60000  -- ms, as CODE in store/lifetimes.py

-- The apps that know a session, by client id.
local function apps_in(session)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', session)) do
    found[#found + 1] = string.match(field, '^rp:(.+)$')
  end
  return found
end

-- Writes the event; `member` is the person in the lists of the shard. `reason` is empty if the session has ended.
local function write_end(outbox, member, sid, clients, reason, now)
  if #clients == 0 then return 0 end
  redis.call('XADD', outbox, 'MAXLEN', '~', '1000', '*', 'type', 'session.ended', 'clients', table.concat(clients, ' '),
    'member', member, 'sid', sid, 'reason', reason, 'at', int(now))
  return 1
end

-- Tells of a session that is about to end, unless it is dead already: whatever ended it has told of it. Returns the number
-- of events. A mark says for the life of a code that the session has ended: an app that exchanged a code afterwards would
-- start a session of its own that no logout token ends.
local function tell_of_end(user, session_prefix, id, outbox, member, now)
  local row = redis.call('HMGET', session_prefix .. id, 'epoch', 'sid')
  if not row[2] or row[1] ~= redis.call('HGET', user, 'epoch') then return 0 end
  redis.call('SET', session_prefix .. row[2] .. ':ended', '1', 'PX', CODE_LASTS)
  return write_end(outbox, member, row[2], apps_in(session_prefix .. id), '', now)
end

-- The same for each of the person's sessions, but the one with the id `kept`: for scripts that are about to change the
-- epoch.
local function tell_of_ends(user, sessions, session_prefix, kept, outbox, member, now)
  local told = 0
  for _, id in ipairs(redis.call('ZREVRANGE', sessions, 0, READ_AT_MOST - 1)) do
    if id ~= kept then told = told + tell_of_end(user, session_prefix, id, outbox, member, now) end
  end
  return told
end

-- Lets another session of the person continue this one in the same browser: apps know it by the same id, and hear when it
-- ends. Returns whether it does.
local function continue_in(user, session, successor)
  local row = redis.call('HMGET', session, 'epoch', 'sid')
  local live = row[1] and row[1] == redis.call('HGET', user, 'epoch')
  if not live or redis.call('HGET', successor, 'epoch') ~= row[1] then return false end
  if not row[2] then return true end
  if redis.call('HSETNX', successor, 'sid', row[2]) == 0 then return false end
  for _, client in ipairs(apps_in(session)) do redis.call('HSET', successor, 'rp:' .. client, '') end
  return true
end
