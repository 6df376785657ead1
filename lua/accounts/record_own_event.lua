--- Append an event of the signed-in person to their audit trail.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- ARGV[1] event
--- ARGV[2] idle (number): ms
--- ARGV[3] address
--- ARGV[4] agent
--- @reply signed_out
--- @reply ok
--- @reserve
--- @include "session"
--- @include "audit"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
record(audit, event, '', address, agent)
return {'ok'}
