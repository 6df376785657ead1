--- Sign a person in: a new session, never one that was there before. (RFC 9700 4.7, session fixation)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- ARGV[1] session_id
--- ARGV[2] session_epoch: as read beside the password that was verified
--- ARGV[3] idle: ms
--- ARGV[4] lifetime: ms
--- ARGV[5] address
--- ARGV[6] agent
--- ARGV[7] rehash: the raw hash at the present cost, or empty where it has that already
--- @reply stale
--- @reply ok
--- @include "session"
--- @include "audit"
local user, session, sessions, audit = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local session_id, session_epoch, idle, lifetime = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local address, agent, rehash = ARGV[5], ARGV[6], ARGV[7]

-- The password may have changed, or the person been disabled, while it was being verified.
local row = redis.call('HMGET', user, 'status', 'session_epoch')
if row[1] ~= 'active' or row[2] ~= session_epoch then return {'stale'} end
if rehash ~= '' then redis.call('HSET', user, 'password', rehash) end
write_session(session, sessions, session_id, session_epoch, idle, lifetime, address, agent, now_ms())
record(audit, 'signed_in', '', address, agent)
return {'ok'}
