--- Read the person of a browser session.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] undos
--- ARGV[1] idle (number): ms
--- @reply signed_out
--- @reply ok email email_verified name picture preferences warned
--- @idempotent
--- @include "session"
--- @include "undo"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, warned_of(user, undos, now)}
