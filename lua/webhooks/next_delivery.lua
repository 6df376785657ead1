--- Return the time until the next delivery is due.
--- KEYS[1] due
--- @reply none
--- @reply ok wait
--- @idempotent
--- @include "now"

local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
if not first[1] then return {'none'} end
return {'ok', math.max(0, tonumber(first[2]) - now_ms())}
