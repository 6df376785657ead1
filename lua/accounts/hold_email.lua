--- Keep an e-mail address in the index until a time, if it is this person's, so that a link can bring it back.
--- KEYS[1] email
--- ARGV[1] user_id
--- ARGV[2] ends: ms
--- @reply ok
--- @reply not_mine
--- @idempotent
--- @reserve

if redis.call('GET', email) ~= user_id then return {'not_mine'} end
redis.call('PEXPIREAT', email, ends)
return {'ok'}
