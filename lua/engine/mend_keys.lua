--- Repair a finding of a check of the store, if nothing has changed since. A second call changes nothing.
--- KEYS[1] anchor: the checked key
--- ARGV[1] tag: the hash tag of the slot
--- ARGV[2] expected (json): a list of [answer, command, what follows the tag in the key, argument ...]; the answer
---   is text, '' for none
--- ARGV[3] writes (json): a list of [command, the key after its tag, argument ...]
--- @reply changed
--- @reply ok kind
--- @derives tag
--- @idempotent
--- @reserve
--- @include "now"

local function in_words(answer)
  if type(answer) == 'table' then return answer.ok or '' end
  return type(answer) == 'number' and int(answer) or answer or ''
end

for _, one in ipairs(expected) do
  if in_words(redis.pcall(one[2], tag .. one[3], unpack(one, 4))) ~= one[1] then return {'changed'} end
end
for _, write in ipairs(writes) do redis.call(write[1], tag .. write[2], unpack(write, 3)) end
return {'ok', redis.call('TYPE', anchor).ok}
