--- End a pushed authorization request, which has its answer now. (RFC 9126 7.3)
--- KEYS[1] pushed
--- KEYS[2] all_pushed
--- ARGV[1] id
--- @reply gone
--- @reply ok
--- @reserve

redis.call('ZREM', all_pushed, id)
if redis.call('DEL', pushed) == 0 then return {'gone'} end
return {'ok'}
