--- End every session of a person but this one, and every sign-in that has come to its second step.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- ARGV[1] session_id
--- ARGV[2] idle: ms
--- ARGV[3] address
--- ARGV[4] agent
--- @reply signed_out
--- @reply ok
--- @include "session"
--- @include "audit"
local user, session, sessions, audit = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local session_id, idle, address, agent = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local epoch = redis.call('HINCRBY', user, 'session_epoch', 1)
redis.call('HSET', session, 'epoch', int(epoch))
local created = redis.call('HGET', session, 'created_at')
redis.call('DEL', sessions)
redis.call('ZADD', sessions, created, session_id)
record(audit, 'other_sessions_ended', '', address, agent)
return {'ok'}
