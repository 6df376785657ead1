--- @include "announce"
--- @include "connected"
-- The due list: whose hosted data, by which app, ends when (ms).
local function put_due(due, client, member, ends)
  redis.call('ZADD', due, int(ends), member .. ':' .. client)
end

-- Takes a pair off the due list, whose data does not end there any more. If it has ended, and nobody came by to tell of
-- it, it is told of now.
local function take_off_due(row, due, outbox, docs, client, member)
  local entry = member .. ':' .. client
  local ended = redis.call('ZSCORE', due, entry)
  if not ended then return end
  redis.call('ZREM', due, entry)
  if redis.call('EXISTS', docs) == 0 then
    announce(row, outbox, 'data.deleted', client, member, 'grace_over', tonumber(ended))
  end
end

-- Takes an app whose grant has ended from a person's row and from the list of the shard. What is to be told of the
-- documents is told first, while the row says whether the app knows the person's id.
local function drop_app(row, due, outbox, docs, app_users, client, member)
  take_off_due(row, due, outbox, docs, client, member)
  redis.call('SREM', app_users, member)
  redis.call('HDEL', row, app_field(client))
end

-- An app that is purged is told of nothing.
local function forget_due(due, client, member)
  redis.call('ZREM', due, member .. ':' .. client)
end

-- The person has deleted documents: where none is left, the app is told, and at no later end again.
local function told_if_empty(row, due, outbox, index, client, member, now)
  if redis.call('EXISTS', index) == 1 then return end
  redis.call('ZREM', due, member .. ':' .. client)
  announce(row, outbox, 'data.deleted', client, member, 'deleted_by_person', now)
end
