--- Finish the deletion of an app: drop its figures and its log, and let its tombstone end when no document can be left.
--- KEYS[1] app
--- KEYS[2] days
--- KEYS[3] people
--- KEYS[4] refusals
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
redis.call('DEL', days, people, refusals)
return {'ok'}
