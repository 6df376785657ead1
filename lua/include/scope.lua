-- A set of scopes is a space-separated string, in the order of SPEC 2.4, which is that of `SCOPES` in store/names.py.
local ALL_SCOPES = 'profile credits:read credits:spend apps:read data:read data:write'

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

-- The scopes of a grant once the person decided on `asked` and ticked `ticked` of them: what was not asked about stays.
local function decided_scopes(granted, asked, ticked)
  local kept = {}
  for name in string.gmatch(ALL_SCOPES, '%S+') do
    if has_scope(ticked, name) or has_scope(granted, name) and not has_scope(asked, name) then kept[#kept + 1] = name end
  end
  return table.concat(kept, ' ')
end
