--- Note when an operator key was last used, and from where; a key that has ended meanwhile stays ended.
--- KEYS[1] key: its row
--- ARGV[1] address
--- @reply gone
--- @reply ok
--- @idempotent
--- @reserve
--- @include "now"

if redis.call('EXISTS', key) == 0 then return {'gone'} end
redis.call('HSET', key, 'used_at', int(now_ms()), 'used_from', address)
return {'ok'}
