--- End one session of a person for an operator. No app's token ends (SPEC 3.1).
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] sessions
--- KEYS[4] other
--- KEYS[5] outbox
--- ARGV[1] other_id
--- ARGV[2] member: the person in the lists of the shard
--- ARGV[3] session_prefix: prefix of a session's key, up to the session id
--- @reply not_found
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "ended"
--- @include "touch"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local told = tell_of_end(user, session_prefix, other_id, outbox, member, now_ms())
redis.call('ZREM', sessions, other_id)
if redis.call('DEL', other) == 1 then record(audit, 'session_ended_by_operator', '', '', '') else touch(other) end
return {'ok', told}
