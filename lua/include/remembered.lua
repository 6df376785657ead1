--- @include "now"
--- @include "scope"
-- A grant remembers consent to redirect URIs in fields `to:<digest>`, which have a number and the granted scopes: the higher
-- the number, the later the consent.
local MOST_REMEMBERED = 8

-- The scopes in such a field; none without the field.
local function remembered_scopes(value)
  return value and string.match(value, '^%d+ (.*)$') or ''
end

local function each_remembered(grant)
  local found, row = {}, redis.call('HGETALL', grant)
  for at = 1, #row, 2 do
    if string.sub(row[at], 1, 3) == 'to:' then
      found[#found + 1] = {field = row[at], number = tonumber(string.match(row[at + 1], '^%d+') or '0')}
    end
  end
  table.sort(found, function(one, other) return one.number < other.number end)
  return found
end

-- Remembers a decision at a redirect URI. Scopes granted there before and not requested now stay; the oldest field makes
-- room.
local function remember(grant, place, asked, ticked)
  local scope = decided_scopes(remembered_scopes(redis.call('HGET', grant, place)), asked, ticked)
  redis.call('HDEL', grant, place)
  local found = each_remembered(grant)
  for at = 1, #found - MOST_REMEMBERED + 1 do redis.call('HDEL', grant, found[at].field) end
  local last = found[#found]
  redis.call('HSET', grant, place, int(last and last.number + 1 or 1) .. ' ' .. scope)
end

local function forget_remembered(grant)
  for _, one in ipairs(each_remembered(grant)) do redis.call('HDEL', grant, one.field) end
end
