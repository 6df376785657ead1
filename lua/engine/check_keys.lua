--- Compare a server's secret keys and layout with the store's, and note which key the server seals with.
--- An empty store takes the server's layout; an older store without a number has layout 1.
--- KEYS[1] keyring
--- ARGV[1] checks (json): an object, key id to check value
--- ARGV[2] front: id of the key this server seals with
--- ARGV[3] layout
--- @reply newer layout
--- @reply foreign
--- @reply conflict id
--- @reply ok layout
--- @reserve
--- @include "now"

local present = redis.call('HGET', keyring, 'layout')
if present and tonumber(present) > tonumber(layout) then return {'newer', present} end
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
local now = int(now_ms())
for id, value in pairs(checks) do
  redis.call('HSET', keyring, 'check:' .. id, value)
  redis.call('HSETNX', keyring, 'known_at:' .. id, now)
end
redis.call('HSET', keyring, 'sealed_at:' .. front, now)
if known == 0 and not present then
  redis.call('HSET', keyring, 'layout', layout)
  present = layout
end
return {'ok', present or '1'}
