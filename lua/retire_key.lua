--- Forget a secret key, unless something sealed under it can still live.
--- KEYS[1] keyring
--- ARGV[1] id
--- ARGV[2] longest: ms that anything sealed can live
--- @reply in_use until
--- @reply ok
--- @include "now"
local keyring = KEYS[1]
local id, longest = ARGV[1], tonumber(ARGV[2])

local sealed_at = redis.call('HGET', keyring, 'sealed_at:' .. id)
if sealed_at and tonumber(sealed_at) + longest > now_ms() then return {'in_use', tonumber(sealed_at) + longest} end
redis.call('HDEL', keyring, 'check:' .. id, 'sealed_at:' .. id)
return {'ok'}
