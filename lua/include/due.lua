--- @include "announce"
--- @include "connected"
-- The due list: when (ms) the hosted data of a person and app ends.
local function put_due(due, client, member, ends)
  redis.call('ZADD', due, int(ends), member .. ':' .. client)
end

-- Removes a pair from the due list, because its data no longer ends there. If the data has ended without an event, sends the
-- event now.
local function take_off_due(row, due, outbox, docs, client, member)
  local entry = member .. ':' .. client
  local ended = redis.call('ZSCORE', due, entry)
  if not ended then return end
  redis.call('ZREM', due, entry)
  if redis.call('EXISTS', docs) == 0 then
    announce(row, outbox, 'data.deleted', client, member, 'grace_over', tonumber(ended))
  end
end

-- Removes an app whose grant has ended from a person's row and from the list of the shard. Writes the event about the
-- documents first, while the row still has whether the app knows the person's id.
local function drop_app(row, due, outbox, docs, app_users, client, member)
  take_off_due(row, due, outbox, docs, client, member)
  redis.call('SREM', app_users, member)
  redis.call('HDEL', row, app_field(client))
end

-- A purged app gets no event.
local function forget_due(due, client, member)
  redis.call('ZREM', due, member .. ':' .. client)
end

-- After the person has deleted documents: if none is left, the app gets the event now, and no second one later.
local function told_if_empty(row, due, outbox, index, client, member, now)
  if redis.call('EXISTS', index) == 1 then return end
  redis.call('ZREM', due, member .. ':' .. client)
  announce(row, outbox, 'data.deleted', client, member, 'deleted_by_person', now)
end
