--- Replace an authenticator app's secret with a new encryption of it, unless the secret changed meanwhile.
--- KEYS[1] factors
--- ARGV[1] expected: the sealed secret that was read
--- ARGV[2] sealed: the same secret under the front key
--- @reply changed
--- @reply ok
--- @idempotent
--- @durable
--- @reserve

if redis.call('HGET', factors, 'secret') ~= expected then return {'changed'} end
redis.call('HSET', factors, 'secret', sealed)
return {'ok'}
