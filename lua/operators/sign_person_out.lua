--- End every session of a person for an operator. No app's token ends (SPEC 3.1).
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] sessions
--- KEYS[4] outbox
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] session_prefix: prefix of a session's key, up to the session id
--- @reply not_found
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "ended"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local told = tell_of_ends(user, sessions, session_prefix, '', outbox, member, now_ms())
redis.call('HINCRBY', user, 'epoch', 1)
record(audit, 'signed_out_by_operator', '', '', '')
return {'ok', told}
