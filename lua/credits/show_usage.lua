--- Read what AI calls used, for the signed-in person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] used
--- KEYS[4] searches
--- ARGV[1] idle (number): ms
--- ARGV[2] days (number): number of days, including today
--- @reply signed_out
--- @reply ok email email_verified name picture preferences first last rows
--- @include "session"
--- @include "account"
--- @include "usage"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local email, verified, name, picture, preferences = profile(user)
local first, last, rows = usage_of(used, searches, '', 0, 0, days, now)
return {'ok', email, verified, name, picture, preferences, first, last, rows}
