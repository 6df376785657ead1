--- Note in a session that the password was typed again.
--- KEYS[1] user
--- KEYS[2] session
--- ARGV[1] password: the raw hash that was verified
--- ARGV[2] idle: ms
--- @reply signed_out
--- @reply stale
--- @reply ok
--- @include "session"
local user, session = KEYS[1], KEYS[2]
local password, idle = ARGV[1], tonumber(ARGV[2])

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if redis.call('HGET', user, 'password') ~= password then return {'stale'} end
redis.call('HSET', session, 'proved_at', int(now))
return {'ok'}
