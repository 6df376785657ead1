--- Finish the deletion of an app: remove its tombstone, figures, log, logo and invitations.
--- KEYS[1] app
--- KEYS[2] days
--- KEYS[3] people
--- KEYS[4] refusals
--- KEYS[5] logo
--- KEYS[6] invitations
--- ARGV[1] expected: the tombstone
--- @reply conflict
--- @reply ok
--- @idempotent
--- @durable
--- @reserve

if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
redis.call('DEL', app, days, people, refusals, logo, invitations)
return {'ok'}
