--- Read the figures of an app.
--- KEYS[1] days
--- KEYS[2] people
--- @reply ok today people rows
--- @idempotent
--- @include "now"

return {'ok', int(math.floor(now_ms() / 86400000)), redis.call('GET', people) or '0', redis.call('HGETALL', days)}
