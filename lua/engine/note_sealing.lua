--- Note that a secret key seals from now on.
--- KEYS[1] keyring
--- ARGV[1] id
--- @reply ok at
--- @idempotent
--- @reserve
--- @include "now"

local now = now_ms()
redis.call('HSET', keyring, 'sealed_at:' .. id, int(now))
return {'ok', now}
