--- Change a password: every other session ends, and this one is replaced.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] new_session
--- KEYS[4] sessions
--- KEYS[5] audit
--- ARGV[1] old_password: the raw hash that was verified
--- ARGV[2] new_password: the raw hash to store
--- ARGV[3] session_id: of the new session
--- ARGV[4] idle: ms
--- ARGV[5] lifetime: ms
--- ARGV[6] address
--- ARGV[7] agent
--- @reply signed_out
--- @reply stale
--- @reply ok
--- @durable
--- @include "session"
--- @include "audit"
local user, session, new_session, sessions, audit = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local old_password, new_password, session_id = ARGV[1], ARGV[2], ARGV[3]
local idle, lifetime, address, agent = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if redis.call('HGET', user, 'password') ~= old_password then return {'stale'} end
redis.call('HSET', user, 'password', new_password)
local recovered_at = redis.call('HGET', session, 'recovered_at')
local epoch = redis.call('HINCRBY', user, 'epoch', 1)
redis.call('DEL', session, sessions)
write_session(new_session, sessions, session_id, int(epoch), idle, lifetime, address, agent, now)
if recovered_at then redis.call('HSET', new_session, 'recovered_at', recovered_at) end
record(audit, 'password_changed', '', address, agent)
return {'ok'}
