--- Change a password: ends every other session and replaces this one. Requires the second step, if there is one.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] new_session
--- KEYS[4] sessions
--- KEYS[5] audit
--- KEYS[6] guesses
--- KEYS[7] factors
--- KEYS[8] passkeys
--- KEYS[9] outbox
--- ARGV[1] old_password: the raw hash that was verified
--- ARGV[2] new_password: the raw hash to store
--- ARGV[3] session_id: of the new session
--- ARGV[4] idle (number): ms
--- ARGV[5] lifetime (number): ms
--- ARGV[6] proof (number): ms
--- ARGV[7] address
--- ARGV[8] agent
--- ARGV[9] member: the person in the lists of the shard
--- ARGV[10] session_prefix: prefix of a session's key, up to the session id
--- ARGV[11] before_id: of the session that is replaced
--- @reply signed_out
--- @reply unproved
--- @reply stale
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"
--- @include "ended"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
-- The row moves, so apps know the session by the same `sid`. It has no re-authentication: each allows one change.
if has_factor(factors, passkeys) and not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if redis.call('HGET', user, 'password') ~= old_password then return {'stale'} end
local told = tell_of_ends(user, sessions, session_prefix, before_id, outbox, member, now)
redis.call('HSET', user, 'password', new_password)
-- Anybody who guessed codes knew the old password.
redis.call('DEL', guesses)
local epoch = redis.call('HINCRBY', user, 'epoch', 1)
redis.call('DEL', sessions)
redis.call('RENAME', session, new_session)
redis.call('HDEL', new_session, 'proved_at', 'shown_at')
write_session(new_session, sessions, session_id, int(epoch), idle, lifetime, address, agent, '', now)
record(audit, 'password_changed', '', address, agent)
return {'ok', told}
