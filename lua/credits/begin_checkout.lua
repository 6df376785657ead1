--- Count that the signed-in person starts to buy credits.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] window
--- ARGV[1] idle (number): ms
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply ok
--- @include "session"
--- @include "window"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
return {'ok'}
