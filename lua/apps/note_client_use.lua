--- Note that an app that registered itself was used.
--- KEYS[1] unused
--- KEYS[2] used
--- ARGV[1] client
--- @reply ok
--- @idempotent
--- @include "now"

redis.call('ZREM', unused, client)
redis.call('ZADD', used, int(now_ms()), client)
return {'ok'}
