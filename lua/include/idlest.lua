--- @include "ended"
-- Makes room for one more session of `most`: the session idle the longest ends; after a bound was lowered, two end until
-- the bound holds. Drops the rest of ended sessions. A store of an earlier release may have more sessions than this reads;
-- the oldest are not read. `prefix` is the prefix of the sessions' keys, up to the id. Apps hear of it as of any end.
-- Returns how many ended.
local function end_idlest(user, sessions, prefix, epoch, most, outbox, member, now)
  if redis.call('ZCARD', sessions) < most then return 0 end
  local standing = {}
  for place, id in ipairs(redis.call('ZRANGE', sessions, 0, 199)) do
    local row = redis.call('HMGET', prefix .. id, 'epoch', 'seen_at')
    if row[1] == epoch then
      standing[#standing + 1] = {id, tonumber(row[2]), place}
    else
      redis.call('ZREM', sessions, id)
    end
  end
  table.sort(standing, function(one, other)
    if one[2] ~= other[2] then return one[2] < other[2] end
    return one[3] < other[3]
  end)
  local ended = math.max(0, math.min(redis.call('ZCARD', sessions) - most + 1, 2, #standing))
  for place = 1, ended do
    tell_of_end(user, prefix, standing[place][1], outbox, member, now)
    redis.call('DEL', prefix .. standing[place][1])
    redis.call('ZREM', sessions, standing[place][1])
  end
  return ended
end
