--- Note that something is sealed with a secret key from now on.
--- KEYS[1] keyring
--- ARGV[1] id
--- @reply ok at
--- @idempotent
--- @reserve
--- @include "now"

local now = now_ms()
redis.call('HSET', keyring, 'sealed_at:' .. id, int(now))
return {'ok', now}
