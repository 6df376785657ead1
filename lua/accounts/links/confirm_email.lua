--- Make a reservation of an e-mail address permanent, if it is still this person's; uses up its invitation.
--- KEYS[1] email
--- KEYS[2] invite
--- ARGV[1] user_id
--- @reply ok
--- @reply lost
--- @idempotent

if redis.call('GET', email) ~= user_id then return {'lost'} end
redis.call('PERSIST', email)
redis.call('DEL', invite)
return {'ok'}
