--- List the endpoints of apps whose last attempt failed, the longest first.
--- KEYS[1] failing
--- ARGV[1] most (number)
--- @reply ok rows count
--- @idempotent
--- @reserve
--- @include "now"

local rows, found = {}, redis.call('ZRANGE', failing, 0, int(most - 1), 'WITHSCORES')
for place = 1, #found, 2 do rows[#rows + 1] = {found[place], found[place + 1]} end
return {'ok', rows, redis.call('ZCARD', failing)}
