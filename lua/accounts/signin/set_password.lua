--- Set a person's password for the operator; ends every session.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] guesses
--- KEYS[4] sessions
--- KEYS[5] outbox
--- ARGV[1] password: the raw hash
--- ARGV[2] member: the person in the lists of the shard
--- ARGV[3] session_prefix: prefix of a session's key, up to the session id
--- @reply not_found
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "ended"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local told = tell_of_ends(user, sessions, session_prefix, '', outbox, member, now_ms())
redis.call('HSET', user, 'password', password)
redis.call('DEL', guesses)
redis.call('HINCRBY', user, 'epoch', 1)
record(audit, 'password_set_by_operator', '', '', '')
return {'ok', told}
