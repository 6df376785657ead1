--- Note in the trail of a person, whose session must be live, what is about to be done with an app of theirs.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- ARGV[1] event
--- ARGV[2] client
--- ARGV[3] idle: ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply ok
--- @include "session"
--- @include "audit"
local user, session, audit = KEYS[1], KEYS[2], KEYS[3]
local event, client, idle, address, agent = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
record(audit, event, client, address, agent)
return {'ok'}
