--- End another session of the same person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] other
--- KEYS[4] sessions
--- KEYS[5] audit
--- ARGV[1] other_id
--- ARGV[2] idle (number): ms
--- ARGV[3] address
--- ARGV[4] agent
--- @reply signed_out
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "touch"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
redis.call('ZREM', sessions, other_id)
if redis.call('DEL', other) == 1 then record(audit, 'session_ended', '', address, agent) else touch(other) end
return {'ok'}
