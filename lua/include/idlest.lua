-- Makes room for one more session of `most`: the one that was idle the longest ends; where a bound was lowered, two, until
-- there are no more than that. What is left of others that ended goes. Of an earlier release there may be more than are
-- looked at here, the oldest. `prefix` is what stands before an id in the keys of the sessions. Returns how many ended.
local function end_idlest(sessions, prefix, epoch, most)
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
    redis.call('DEL', prefix .. standing[place][1])
    redis.call('ZREM', sessions, standing[place][1])
  end
  return ended
end
