--- @include "announce"
-- The due list: whose hosted data, by which app, ends when (ms).
local function put_due(due, client, member, ends)
  redis.call('ZADD', due, int(ends), member .. ':' .. client)
end

-- Takes a pair off the due list, whose data does not end there any more. If it has ended, and nobody came by to tell of
-- it, it is told of now.
local function take_off_due(due, outbox, docs, client, member)
  local entry = member .. ':' .. client
  local ended = redis.call('ZSCORE', due, entry)
  if not ended then return end
  redis.call('ZREM', due, entry)
  if redis.call('EXISTS', docs) == 0 then
    announce(outbox, 'data.deleted', client, member, 'grace_over', tonumber(ended))
  end
end

-- An app that is deleted is told of nothing.
local function forget_due(due, client, member)
  redis.call('ZREM', due, member .. ':' .. client)
end

-- The person has deleted documents: where none is left, the app is told, and at no later end again.
local function told_if_empty(due, outbox, index, client, member, now)
  if redis.call('EXISTS', index) == 1 then return end
  redis.call('ZREM', due, member .. ':' .. client)
  announce(outbox, 'data.deleted', client, member, 'deleted_by_person', now)
end
