-- Entries out of one argument, where each is behind a byte with its length.
local function unpacked(packed)
  local found, at, past = {}, 1, #packed
  while at <= past do
    local stop = at + string.byte(packed, at)
    found[#found + 1] = string.sub(packed, at + 1, stop)
    at = stop + 1
  end
  return found
end
