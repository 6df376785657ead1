--- Set a person's password for the operator; ends every session.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] guesses
--- ARGV[1] password: the raw hash
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "audit"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
redis.call('HSET', user, 'password', password)
redis.call('DEL', guesses)
redis.call('HINCRBY', user, 'epoch', 1)
record(audit, 'password_set_by_operator', '', '', '')
return {'ok'}
