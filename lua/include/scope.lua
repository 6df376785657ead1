-- A set of scopes is a space-separated string, in the order of `SCOPES` in store/names.py. Scopes of APIs follow, each
-- qualified by its API (`lua/include/oauth/resource.lua`).
local ALL_SCOPES = 'openid profile email groups credits:read credits:spend apps:read data:read data:write'

local function has_scope(scopes, name)
  return string.find(' ' .. scopes .. ' ', ' ' .. name .. ' ', 1, true) ~= nil
end

local function covers(scopes, wanted)
  for name in string.gmatch(wanted, '%S+') do
    if not has_scope(scopes, name) then return false end
  end
  return true
end

-- The scopes in both `wanted` and `scopes`.
local function intersect(wanted, scopes)
  local both = {}
  for name in string.gmatch(wanted, '%S+') do
    if has_scope(scopes, name) then both[#both + 1] = name end
  end
  return table.concat(both, ' ')
end

-- The scopes of a grant after the person ticked `ticked` of the requested scopes `asked`; others stay.
local function decided_scopes(granted, asked, ticked)
  local kept = {}
  for name in string.gmatch(ALL_SCOPES, '%S+') do
    if has_scope(ticked, name) or has_scope(granted, name) and not has_scope(asked, name) then kept[#kept + 1] = name end
  end
  for name in string.gmatch(granted, '%S+/%S+') do
    if not has_scope(asked, name) then kept[#kept + 1] = name end
  end
  for name in string.gmatch(ticked, '%S+/%S+') do kept[#kept + 1] = name end
  return table.concat(kept, ' ')
end
