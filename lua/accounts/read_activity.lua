--- Read the person's activity: security events and ordinary events, each newest first.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] activity
--- ARGV[1] idle (number): ms
--- @reply signed_out
--- @reply ok email email_verified name picture preferences entries ordinary
--- @idempotent
--- @include "audit"
--- @include "session"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, events_of(audit), events_of(activity)}
