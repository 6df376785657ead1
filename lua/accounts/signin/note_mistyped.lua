--- Note in a person's activity that somebody typed a wrong password in this session, at a limited rate.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] window: of such lines for this session
--- ARGV[1] limit (number): lines per period
--- ARGV[2] period (number): ms
--- ARGV[3] idle (number): ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply ok
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "window"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if take_window(window, limit, period, now) then record(audit, 'password_mistyped', '', address, agent) end
return {'ok'}
