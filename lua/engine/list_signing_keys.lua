--- Read all signing keys, and the time that decides which of them signs.
--- KEYS[1] signing
--- @reply ok now fields
--- @idempotent
--- @include "now"

return {'ok', int(now_ms()), redis.call('HGETALL', signing)}
