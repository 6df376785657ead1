--- End an operator key at once.
--- KEYS[1] key: its row
--- KEYS[2] all: the ids of all keys
--- ARGV[1] id
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve

redis.call('ZREM', all, id)
if redis.call('DEL', key) == 0 then return {'not_found'} end
return {'ok'}
