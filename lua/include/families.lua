--- @include "now"
-- The token families of a pair of person and app stand in the row of its grant, as fields `f:<id>`, so that their number
-- has a bound. `families` is what stands before an id in the keys of the person's families. Those of an earlier release
-- are not listed: they end with their last refresh token.
local MOST_ENDED = 2

local function families_of(grant)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', grant)) do
    found[#found + 1] = string.match(field, '^f:(.*)$')
  end
  return found
end

-- Ends a family that makes way for another. Its row stays as long as an access token may, and says so: whoever brings a
-- token of it is no thief, and the other families of the pair live on. One that was dead keeps what it says.
local function crowd_out(grant, families, id, live, access_ttl, now)
  if live then redis.call('HSET', families .. id, 'revoked', 'crowded') end
  redis.call('PEXPIREAT', families .. id, int(now + access_ttl), 'LT')
  redis.call('HDEL', grant, 'f:' .. id)
end

-- Lists a family that is about to be written. Where the grant has `most` already, others make way: dead ones first, then
-- those that end first, which without a lifetime are those unused the longest. One for one; where a bound was lowered, two,
-- until there are no more than that. Names of rows that are gone are dropped now and then. Returns how many live ones
-- ended.
local function list_family(grant, families, id, epoch, most, access_ttl, now)
  local listed, standing, ended = families_of(grant), {}, 0
  if #listed >= most or #listed % 8 == 7 then
    for place, one in ipairs(listed) do
      local row = redis.call('HMGET', families .. one, 'epoch', 'revoked')
      if row[1] then
        local live = row[1] == epoch and not row[2]
        standing[#standing + 1] = {one, live, redis.call('PTTL', families .. one), place}
      else
        redis.call('HDEL', grant, 'f:' .. one)
      end
    end
    table.sort(standing, function(one, other)
      if one[2] ~= other[2] then return other[2] end
      if one[3] ~= other[3] then return one[3] < other[3] end
      return one[4] < other[4]
    end)
    for place = 1, math.min(#standing - most + 1, MOST_ENDED) do
      crowd_out(grant, families, standing[place][1], standing[place][2], access_ttl, now)
      if standing[place][2] then ended = ended + 1 end
    end
  end
  redis.call('HSET', grant, 'f:' .. id, '')
  return ended
end
