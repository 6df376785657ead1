--- Read the person's audit trail, newest first.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- ARGV[1] idle: ms
--- ARGV[2] count
--- @reply signed_out
--- @reply ok email email_verified name picture entries
--- @idempotent
--- @include "audit"
--- @include "session"
local user, session, audit = KEYS[1], KEYS[2], KEYS[3]
local idle, count = tonumber(ARGV[1]), tonumber(ARGV[2])

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local email, verified, name, picture = profile(user)
return {'ok', email, verified, name, picture, newest_events(audit, count)}
