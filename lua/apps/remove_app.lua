--- End the deletion of an app: its tombstone goes, with its numbers.
--- KEYS[1] app
--- KEYS[2] days
--- KEYS[3] people
--- ARGV[1] expected: the tombstone
--- @reply conflict
--- @reply ok
--- @idempotent
--- @durable
--- @reserve

if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
redis.call('DEL', app, days, people)
return {'ok'}
