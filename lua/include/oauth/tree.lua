--- @include "delegated"
-- The live delegated tokens of a grant (RFC 8693), for the person. `prefix` is that of the person's keys, up to the noun.

-- Whether the token of a family at a generation is live, and the family's row; each family is read once (`seen`).
local function live_family(prefix, id, generation, epoch, seen)
  local known = seen[id .. ':' .. generation]
  if known ~= nil then return known end
  local row = redis.call('HMGET', prefix .. 'family:' .. id, 'epoch', 'revoked', 'up', 'scope', 'act', 'name', 'used',
    'budget:credits', 'budget:llm-inference')
  local live = row[1] and row[1] == epoch and not row[2]
    and redis.call('EXISTS', prefix .. 'access:' .. id .. ':' .. generation) == 1
  -- What is above it decides too: at most five times.
  local above, at = string.match(row[3] or '', '^(%S+):(%d+)')
  if live and above then live = live_family(prefix, above, at, epoch, seen) and true or false end
  seen[id .. ':' .. generation] = live and row or false
  return seen[id .. ':' .. generation]
end

-- One row for each: id, that of the family above it or '' if a sign-in is above it, scope, who exchanged, name, charges,
-- budget of each type or '', end (ms). `listed`: the field `delegated`.
local function tree_of(prefix, listed, epoch, now)
  local rows, seen = {}, {}
  for _, one in ipairs(delegated_of(listed, now)) do
    local row = live_family(prefix, one[1], '0', epoch, seen)
    if row and row[3] then
      local above = string.match(row[3], '^(%S+):%d+ ') or ''
      rows[#rows + 1] = {one[1], above, row[4], string.match(row[5], '^%S+'), row[6] or '', row[7] or '0', row[8] or '',
        row[9] or '', one[2]}
    end
  end
  return rows
end
