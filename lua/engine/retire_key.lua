--- Forget a secret key, unless something sealed under it can still live.
--- KEYS[1] keyring
--- ARGV[1] id
--- ARGV[2] longest (number): ms that anything sealed can live
--- @reply in_use until
--- @reply documents
--- @reply ok
--- @include "now"
--- @include "needed_key"

local needed, until_ms = needed_key(keyring, id, longest, now_ms())
if needed == 'in_use' then return {'in_use', until_ms} end
if needed then return {'documents'} end
redis.call('HDEL', keyring, 'check:' .. id, 'sealed_at:' .. id, 'known_at:' .. id)
return {'ok'}
