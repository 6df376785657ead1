--- End a person's other sessions and all sign-ins that wait for a second step; known devices stay known.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- ARGV[1] idle (number): ms
--- ARGV[2] address
--- ARGV[3] agent
--- @reply signed_out
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "device"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
-- The rows of the other sessions expire; nothing lives in an old epoch.
local row = redis.call('HMGET', user, 'epoch', 'devices')
local since = devices_since(row[1], row[2])
local epoch = int(redis.call('HINCRBY', user, 'epoch', 1))
redis.call('HSET', user, 'devices', since .. ' ' .. epoch)
redis.call('HSET', session, 'epoch', epoch)
record(audit, 'other_sessions_ended', '', address, agent)
return {'ok'}
