--- Make a reservation of an e-mail address last, if it is still this person's.
--- KEYS[1] email
--- ARGV[1] user_id
--- @reply ok
--- @reply lost
--- @idempotent
local email = KEYS[1]
local user_id = ARGV[1]

if redis.call('GET', email) ~= user_id then return {'lost'} end
redis.call('PERSIST', email)
return {'ok'}
