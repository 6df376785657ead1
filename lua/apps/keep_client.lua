--- Keep an app that registered itself, because somebody allows it: its registration no longer ends by itself.
--- KEYS[1] app
--- ARGV[1] expected: the registration, as it was read
--- @reply conflict
--- @reply ok
--- @idempotent
--- @durable

if redis.call('GET', app) ~= expected then return {'conflict'} end
-- Written again each time: what an earlier attempt wrote may not be confirmed yet.
redis.call('SET', app, expected)
return {'ok'}
