--- Take an identity at another server off a person's list: its reservation was lost before it was permanent.
--- KEYS[1] identities
--- ARGV[1] name: of the index entry
--- @reply ok
--- @idempotent
--- @reserve

redis.call('HDEL', identities, name)
return {'ok'}
