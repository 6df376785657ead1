--- End a person's other sessions and all sign-ins that wait for a second step; known devices stay known.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] sessions
--- KEYS[5] outbox
--- ARGV[1] idle (number): ms
--- ARGV[2] address
--- ARGV[3] agent
--- ARGV[4] member: the person in the lists of the shard
--- ARGV[5] session_prefix: prefix of a session's key, up to the session id
--- ARGV[6] session_id: of the session that stays
--- @reply signed_out
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "device"
--- @include "ended"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local told = tell_of_ends(user, sessions, session_prefix, session_id, outbox, member, now)
-- The rows of the other sessions expire; nothing lives in an old epoch.
local row = redis.call('HMGET', user, 'epoch', 'devices')
local since = devices_since(row[1], row[2])
local epoch = int(redis.call('HINCRBY', user, 'epoch', 1))
redis.call('HSET', user, 'devices', since .. ' ' .. epoch)
redis.call('HSET', session, 'epoch', epoch)
record(audit, 'other_sessions_ended', '', address, agent)
return {'ok', told}
