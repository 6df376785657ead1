--- Note that the index of people is to be rebuilt, and return how far an earlier rebuild has come.
--- KEYS[1] rebuild
--- @reply ok done
--- @idempotent
--- @reserve

redis.call('SET', rebuild, '0', 'NX')
return {'ok', redis.call('GET', rebuild)}
