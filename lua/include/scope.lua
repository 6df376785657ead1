-- A set of scopes is a space-separated string, in the order of SPEC 2.4.
local function has_scope(scopes, name)
  return string.find(' ' .. scopes .. ' ', ' ' .. name .. ' ', 1, true) ~= nil
end

local function covers(scopes, wanted)
  for name in string.gmatch(wanted, '%S+') do
    if not has_scope(scopes, name) then return false end
  end
  return true
end

-- The scopes of `wanted` that stand in `scopes` too.
local function intersect(wanted, scopes)
  local both = {}
  for name in string.gmatch(wanted, '%S+') do
    if has_scope(scopes, name) then both[#both + 1] = name end
  end
  return table.concat(both, ' ')
end
