--- End the deletion of an app: its numbers go, and its tombstone ends when no document of it can be left.
--- KEYS[1] app
--- KEYS[2] days
--- KEYS[3] people
--- ARGV[1] expected: the tombstone as it was read
--- ARGV[2] tombstone: the one to keep
--- ARGV[3] ends: epoch ms at which it goes
--- @reply conflict
--- @reply ok
--- @durable
--- @reserve

if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
redis.call('SET', app, tombstone)
redis.call('PEXPIREAT', app, ends)
redis.call('DEL', days, people)
return {'ok'}
