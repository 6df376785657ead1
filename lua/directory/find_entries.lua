--- Find out which entries a section of the index of people has, for a check of the store; changes nothing.
--- KEYS[1] listed: where each bucket of the section begins
--- ARGV[1] bucket: prefix of the buckets' keys
--- ARGV[2] entries: each behind a byte with its length
--- @reply ok found
--- @derives bucket
--- @idempotent
--- @include "buckets"
--- @include "unpacked"

-- For each entry 1 if its bucket has it, or else 0, also if the section or the bucket is a key of another type.
local found = {}
for place, entry in ipairs(unpacked(entries)) do
  local start = redis.pcall('ZREVRANGEBYLEX', listed, '[' .. key_of(entry), '-', 'LIMIT', '0', '1')[1]
  found[place] = start and type(redis.pcall('LPOS', bucket .. in_hex(start), entry)) == 'number' and 1 or 0
end
return {'ok', found}
