--- Make a reservation of an identity at another server, or of an external id, permanent if it is still this person's.
--- KEYS[1] identity
--- ARGV[1] user_id
--- @reply ok
--- @reply lost
--- @idempotent
--- @reserve

if redis.call('GET', identity) ~= user_id then return {'lost'} end
redis.call('PERSIST', identity)
return {'ok'}
