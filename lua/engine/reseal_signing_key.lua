--- Replace the private half of a signing key with a new encryption of it, unless the key changed meanwhile.
--- KEYS[1] signing
--- ARGV[1] kid
--- ARGV[2] expected: the sealed half that was read
--- ARGV[3] sealed: the same half under the front key
--- @reply changed
--- @reply ok
--- @idempotent
--- @durable
--- @reserve

if redis.call('HGET', signing, kid .. ':private') ~= expected then return {'changed'} end
redis.call('HSET', signing, kid .. ':private', sealed)
return {'ok'}
