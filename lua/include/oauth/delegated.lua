--- @include "now"
--- @include "lineage"
-- The delegated tokens of a grant (RFC 8693): its field `delegated`, 'id:ends' for each family, the oldest first, so that
-- their number has a bound and the person sees them. `ends` (ms) is the end of the token.

-- The listed families that have not ended by time, each {id, ends as text}.
local function delegated_of(text, now)
  local found = {}
  for id, ends in string.gmatch(text or '', '(%S+):(%d+)') do
    if tonumber(ends) > now then found[#found + 1] = {id, ends} end
  end
  return found
end

-- Whether a listed family is live: it, its access token, and all tokens above it.
local function is_live(family, access, epoch)
  local row = ancestor(family, access, epoch)
  return row and (not row[3] or lineage(family, access, row[3], epoch)) and true or false
end

-- Lists a family that is about to be written; false if the grant has `most` live ones. `family` and `access` are any of the
-- person's keys of these kinds.
local function list_delegated(grant, family, access, epoch, id, ends, most, now)
  local families, tokens = string.match(family, '^.*:'), string.match(access, '^.*:access:')
  local listed, kept = delegated_of(redis.call('HGET', grant, 'delegated'), now), {}
  for _, one in ipairs(listed) do
    local live = #listed < most or is_live(families .. one[1], tokens .. one[1] .. ':0', epoch)
    if live then kept[#kept + 1] = one[1] .. ':' .. one[2] end
  end
  if #kept >= most then return false end
  kept[#kept + 1] = id .. ':' .. int(ends)
  redis.call('HSET', grant, 'delegated', table.concat(kept, ' '))
  return true
end
