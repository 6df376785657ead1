--- Write the registration of an app that registers itself, if the stored one is unchanged; every process drops its copy.
--- KEYS[1] app
--- ARGV[1] expected: the bytes that were read, or empty for none
--- ARGV[2] registration: the bytes to store
--- ARGV[3] lasts (number): ms until it ends if nobody has allowed it
--- ARGV[4] channel: of invalidations
--- ARGV[5] client
--- @reply conflict
--- @reply ok
--- @durable

if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
if redis.call('PTTL', app) == -1 then
  redis.call('SET', app, registration, 'KEEPTTL')
else
  redis.call('SET', app, registration, 'PX', lasts)
end
redis.call('PUBLISH', channel, client)
return {'ok'}
