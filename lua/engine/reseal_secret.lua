--- Put the same secret of an authenticator app in another encryption in its place, unless it changed meanwhile.
--- KEYS[1] factors
--- ARGV[1] expected: the sealed secret that was read
--- ARGV[2] sealed: the same secret under the front key
--- @reply changed
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
local factors = KEYS[1]
local expected, sealed = ARGV[1], ARGV[2]

if redis.call('HGET', factors, 'secret') ~= expected then return {'changed'} end
redis.call('HSET', factors, 'secret', sealed)
return {'ok'}
