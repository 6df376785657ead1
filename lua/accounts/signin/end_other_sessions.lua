--- End every session of a person but this one, and every sign-in that has come to its second step; no known browser.
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
-- The rows of the others idle out; nothing lives in an epoch that is over.
local row = redis.call('HMGET', user, 'epoch', 'devices')
local since = devices_since(row[1], row[2])
local epoch = int(redis.call('HINCRBY', user, 'epoch', 1))
redis.call('HSET', user, 'devices', since .. ' ' .. epoch)
redis.call('HSET', session, 'epoch', epoch)
record(audit, 'other_sessions_ended', '', address, agent)
return {'ok'}
