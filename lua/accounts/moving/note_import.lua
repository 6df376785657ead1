--- Note how far an import has come.
--- KEYS[1] import
--- ARGV[1] fields (json): names and values
--- ARGV[2] lasts (number): ms
--- @reply ok
--- @idempotent
--- @durable

redis.call('HSET', import, unpack(fields))
redis.call('PEXPIRE', import, lasts)
return {'ok'}
