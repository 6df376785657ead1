--- Give back a claimed delivery without an attempt: it does not count, and is due later.
--- KEYS[1] delivery
--- KEYS[2] due
--- ARGV[1] id
--- ARGV[2] attempt: its number, from the claim
--- ARGV[3] wait (number): ms
--- @reply stale
--- @reply ok
--- @reserve
--- @include "now"

local row = redis.call('HMGET', delivery, 'state', 'attempts', 'next_attempt_at')
if row[1] ~= 'pending' or row[2] ~= attempt or row[3] then return {'stale'} end
local next_attempt = int(now_ms() + wait)
redis.call('HINCRBY', delivery, 'attempts', -1)
redis.call('HINCRBY', delivery, 'tries', -1)
redis.call('HSET', delivery, 'next_attempt_at', next_attempt)
redis.call('ZADD', due, next_attempt, id)
return {'ok'}
