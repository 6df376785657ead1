--- Write a registration with its logo, or without one, if the stored one is unchanged; every process drops its copy.
--- KEYS[1] app
--- KEYS[2] logo
--- ARGV[1] expected: the bytes that were read, or empty for none
--- ARGV[2] registration: the bytes to store
--- ARGV[3] image: the encoded logo, or empty to remove it
--- ARGV[4] channel: of invalidations
--- ARGV[5] client
--- @reply conflict
--- @reply ok
--- @durable

if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
if image == '' then redis.call('DEL', logo) else redis.call('SET', logo, image) end
redis.call('SET', app, registration, 'KEEPTTL')
redis.call('PUBLISH', channel, client)
return {'ok'}
