--- Remove an identity at another server, or an external id, from the index if it is this person's.
--- KEYS[1] identity
--- ARGV[1] user_id
--- @reply ok
--- @reply not_mine
--- @idempotent

if redis.call('GET', identity) ~= user_id then return {'not_mine'} end
redis.call('DEL', identity)
return {'ok'}
