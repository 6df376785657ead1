--- End another session of the same person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] other
--- KEYS[4] sessions
--- KEYS[5] audit
--- KEYS[6] outbox
--- ARGV[1] other_id
--- ARGV[2] idle (number): ms
--- ARGV[3] address
--- ARGV[4] agent
--- ARGV[5] member: the person in the lists of the shard
--- ARGV[6] session_prefix: prefix of a session's key, up to the session id
--- @reply signed_out
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "touch"
--- @include "ended"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local told = tell_of_end(user, session_prefix, other_id, outbox, member, now)
redis.call('ZREM', sessions, other_id)
if redis.call('DEL', other) == 1 then record(audit, 'session_ended', '', address, agent) else touch(other) end
return {'ok', told}
