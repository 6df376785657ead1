--- @include "now"
-- The token families of a (person, app) pair are fields `f:<id>` in the row of its grant, so that their number has a
-- bound. `families` is the prefix of the keys of the person's families, up to the id. Families of an earlier release are
-- not listed: they end with their last refresh token.
local MOST_ENDED = 2

local function families_of(grant)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', grant)) do
    found[#found + 1] = string.match(field, '^f:(.*)$')
  end
  return found
end

-- Ends a family to make room for another. Its row is marked and stays as long as an access token may live: a token of this
-- family is no sign of theft, and the pair's other families stay alive. A family that was dead already is not marked.
local function crowd_out(grant, families, id, live, access_ttl, now)
  if live then redis.call('HSET', families .. id, 'revoked', 'crowded') end
  redis.call('PEXPIREAT', families .. id, int(now + access_ttl), 'LT')
  redis.call('HDEL', grant, 'f:' .. id)
end

-- Lists a family that is about to be written. If the grant has `most` already, others make room: dead ones first, and after
-- them those that expire first, which without a lifetime are those unused the longest. One makes room for one; after a
-- bound was lowered, two for one until the bound holds. Names of missing rows are dropped now and then. Returns how many
-- live families ended.
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
