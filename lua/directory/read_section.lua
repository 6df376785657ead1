--- Read buckets of a section of the index of people, from the one that has a key.
--- KEYS[1] listed: where each bucket of the section begins
--- ARGV[1] bucket: prefix of the buckets' keys
--- ARGV[2] key: text, zero byte and id, or the beginning of one
--- ARGV[3] most (number): buckets
--- @reply ok starts entries after
--- @derives bucket
--- @idempotent
--- @include "buckets"

local starts = redis.call('ZRANGEBYLEX', listed, '[' .. beginning_of(listed, key), '+', 'LIMIT', '0', most + 1)
local after = table.remove(starts, most + 1)
local entries = {}
for place, start in ipairs(starts) do
  local name = bucket .. in_hex(start)
  entries[place] = redis.call('LRANGE', name, 0, -1)
end
return {'ok', starts, entries, after or ''}
