--- Read the person a browser session belongs to.
--- KEYS[1] user
--- KEYS[2] session
--- ARGV[1] idle: ms
--- @reply signed_out
--- @reply ok email email_verified name picture
--- @idempotent
--- @include "session"
local user, session = KEYS[1], KEYS[2]
local idle = tonumber(ARGV[1])

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local email, verified, name, picture = profile(user)
return {'ok', email, verified, name, picture}
