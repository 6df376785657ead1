--- Finish the deletion of an app: drop its figures, log and logo, and let its tombstone end with the last document.
--- KEYS[1] app
--- KEYS[2] days
--- KEYS[3] people
--- KEYS[4] refusals
--- KEYS[5] logo
--- ARGV[1] expected: the tombstone, as read
--- ARGV[2] tombstone: the one to keep
--- ARGV[3] ends: when the tombstone ends, epoch ms
--- @reply conflict
--- @reply ok
--- @durable
--- @reserve

if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
redis.call('SET', app, tombstone)
redis.call('PEXPIREAT', app, ends)
redis.call('DEL', days, people, refusals, logo)
return {'ok'}
