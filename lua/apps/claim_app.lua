--- Add an app that is about to be registered to its owner's list, if there is room.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] apps
--- KEYS[4] activity
--- KEYS[5] window
--- ARGV[1] client
--- ARGV[2] most (number): apps of one person
--- ARGV[3] limit (number)
--- ARGV[4] period (number): ms
--- ARGV[5] idle (number): ms
--- ARGV[6] address
--- ARGV[7] agent
--- @reply signed_out
--- @reply full
--- @reply rate_limited reset retry
--- @reply ok
--- @include "session"
--- @include "window"
--- @include "audit"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
-- The form was sent again.
if redis.call('ZSCORE', apps, client) then return {'ok'} end
if redis.call('ZCARD', apps) >= most then return {'full'} end
local admitted, remaining, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
redis.call('ZADD', apps, int(now), client)
record(activity, 'app_registered', client, address, agent)
return {'ok'}
