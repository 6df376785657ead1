--- @include "scope"
-- Scopes that a person left out of a decision: field `left_out` of the grant. No issuer of assertions gives them until the
-- person ticks them.

local function without(scopes, others)
  local rest = {}
  for name in string.gmatch(scopes, '%S+') do
    if not has_scope(others, name) then rest[#rest + 1] = name end
  end
  return table.concat(rest, ' ')
end

-- Notes a decision on the requested scopes (`asked`) of which the person ticked `ticked`.
local function note_left_out(grant, asked, ticked)
  local before = redis.call('HGET', grant, 'left_out')
  local after = decided_scopes(before or '', asked, without(asked, ticked))
  if after ~= '' then
    redis.call('HSET', grant, 'left_out', after)
  elseif before then
    redis.call('HDEL', grant, 'left_out')
  end
end
