--- Compare a server's secret keys and layout with the store's, and note which key the server seals with.
--- `missing`: ids of keys that the server lacks and that sealed something which can still live.
--- An empty store takes the server's layout; an older store without a number has layout 1.
--- KEYS[1] keyring
--- ARGV[1] checks (json): an object, key id to check value
--- ARGV[2] front: id of the key this server seals with
--- ARGV[3] layout
--- ARGV[4] longest (number): ms that anything sealed can live
--- @reply newer layout
--- @reply foreign
--- @reply conflict id
--- @reply ok layout missing
--- @reserve
--- @include "now"
--- @include "needed_key"

local present = redis.call('HGET', keyring, 'layout')
if present and tonumber(present) > tonumber(layout) then return {'newer', present} end
local known, matching, missing = 0, 0, {}
local now = int(now_ms())
for _, field in ipairs(redis.call('HKEYS', keyring)) do
  local id = string.match(field, '^check:(%d+)$')
  if id then
    known = known + 1
    if not checks[id] and needed_key(keyring, id, longest, now_ms()) then missing[#missing + 1] = id end
  end
end
for id, value in pairs(checks) do
  local stored = redis.call('HGET', keyring, 'check:' .. id)
  if stored == value then matching = matching + 1
  elseif stored then return {'conflict', id} end
end
if known > 0 and matching == 0 then return {'foreign'} end
for id, value in pairs(checks) do
  redis.call('HSET', keyring, 'check:' .. id, value)
  redis.call('HSETNX', keyring, 'known_at:' .. id, now)
end
redis.call('HSET', keyring, 'sealed_at:' .. front, now)
if known == 0 and not present then
  redis.call('HSET', keyring, 'layout', layout)
  present = layout
end
return {'ok', present or '1', missing}
