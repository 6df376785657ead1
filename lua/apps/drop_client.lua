--- Drop the registration of an app that registered itself, unless somebody has allowed it.
--- KEYS[1] app
--- ARGV[1] channel: of invalidations
--- ARGV[2] client
--- @reply kept
--- @reply ok
--- @idempotent
--- @reserve

if redis.call('PTTL', app) == -1 then return {'kept'} end
redis.call('DEL', app)
redis.call('PUBLISH', channel, client)
return {'ok'}
