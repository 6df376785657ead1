--- Make a reservation of an e-mail address last, if it is still this person's; its invitation is used up.
--- KEYS[1] email
--- KEYS[2] invite
--- ARGV[1] user_id
--- @reply ok
--- @reply lost
--- @idempotent
local email, invite = KEYS[1], KEYS[2]
local user_id = ARGV[1]

if redis.call('GET', email) ~= user_id then return {'lost'} end
redis.call('PERSIST', email)
redis.call('DEL', invite)
return {'ok'}
