--- Write a registration, or a tombstone with its end, if the stored one is unchanged; every process drops its copy.
--- KEYS[1] app
--- ARGV[1] expected: the bytes that were read, or empty for none
--- ARGV[2] registration: the bytes to store, or empty to delete
--- ARGV[3] channel: of invalidations
--- ARGV[4] client
--- @reply conflict
--- @reply ok
--- @durable
--- @reserve

if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
if registration == '' then redis.call('DEL', app) else redis.call('SET', app, registration, 'KEEPTTL') end
redis.call('PUBLISH', channel, client)
return {'ok'}
