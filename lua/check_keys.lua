--- Hold a server's secret keys against those the store was written with, and note which one it seals with.
--- KEYS[1] keyring
--- ARGV[1] checks: JSON object, key id to check value
--- ARGV[2] front: id of the key this server seals with
--- @reply foreign
--- @reply conflict id
--- @reply ok
--- @include "now"
local keyring = KEYS[1]
local checks, front = cjson.decode(ARGV[1]), ARGV[2]

local known, matching = 0, 0
for _, field in ipairs(redis.call('HKEYS', keyring)) do
  if string.find(field, 'check:', 1, true) == 1 then known = known + 1 end
end
for id, value in pairs(checks) do
  local stored = redis.call('HGET', keyring, 'check:' .. id)
  if stored == value then matching = matching + 1
  elseif stored then return {'conflict', id} end
end
if known > 0 and matching == 0 then return {'foreign'} end
for id, value in pairs(checks) do redis.call('HSET', keyring, 'check:' .. id, value) end
redis.call('HSET', keyring, 'sealed_at:' .. front, int(now_ms()))
return {'ok'}
