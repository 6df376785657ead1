--- Remove an e-mail address from the index, if it is this person's.
--- KEYS[1] email
--- ARGV[1] user_id
--- @reply ok
--- @reply not_mine
--- @idempotent

if redis.call('GET', email) ~= user_id then return {'not_mine'} end
redis.call('DEL', email)
return {'ok'}
