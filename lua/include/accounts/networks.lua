--- @include "window"
-- The windows of an address, from the widest network around it to the narrowest. If two networks are the same, they have
-- the same key, which counts once.
local function each_once(wide, middle, narrow, limits)
  local rungs = {{narrow, limits[1]}}
  if middle ~= narrow then rungs[#rungs + 1] = {middle, limits[2]} end
  if wide ~= middle then rungs[#rungs + 1] = {wide, limits[3]} end
  return rungs
end
