-- A bucket is a list of entries, in no order, so that adding one replicates one entry. An entry is a text and the 16
-- bytes of a user id. Entries are ordered by the text, a zero byte and the id. A bucket has the entries from its
-- beginning up to the beginning of the next bucket; `listed` has the beginnings.
local function key_of(entry)
  return string.sub(entry, 1, -17) .. '\0' .. string.sub(entry, -16)
end

-- The beginning of the bucket for a key; that of the first bucket is empty.
local function beginning_of(listed, key)
  return redis.call('ZREVRANGEBYLEX', listed, '[' .. key, '-', 'LIMIT', '0', '1')[1] or ''
end

local HEX = {'%02x', '%02x%02x', '%02x%02x%02x', '%02x%02x%02x%02x'}
local function in_hex(text)
  local found = ''
  for at = 1, #text, 4 do
    local few = math.min(4, #text - at + 1)
    found = found .. string.format(HEX[few], string.byte(text, at, at + few - 1))
  end
  return found
end
