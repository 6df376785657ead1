--- Sign a person in by password: start a new session, never reuse one, or lead to the second step.
--- (RFC 9700 4.7, session fixation)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] passkeys
--- KEYS[7] undos
--- KEYS[8] outbox
--- KEYS[9] apps
--- KEYS[10] teams
--- ARGV[1] session_id
--- ARGV[2] session_epoch: read with the verified password
--- ARGV[3] idle (number): ms
--- ARGV[4] lifetime (number): ms
--- ARGV[5] address
--- ARGV[6] agent
--- ARGV[7] rehash: the raw hash at the present cost, or empty if unchanged
--- ARGV[8] session_prefix: prefix of a session's key, up to the session id
--- ARGV[9] most_sessions (number): of one person
--- ARGV[10] member: the person in the lists of the shard
--- ARGV[11] required: who must have a second step: all, owners, or empty
--- @reply stale
--- @reply second_step at devices_since
--- @reply setup at devices_since
--- @reply ok warned before now
--- @derives session_prefix
--- @reserve
--- @include "session"
--- @include "idlest"
--- @include "audit"
--- @include "factors"
--- @include "required"
--- @include "device"
--- @include "undo"

-- During the verification the password may have changed, or the person may have been disabled.
local row = redis.call('HMGET', user, 'status', 'epoch', 'devices')
if row[1] ~= 'active' or row[2] ~= session_epoch then return {'stale'} end
if rehash ~= '' then redis.call('HSET', user, 'password', rehash) end
local now = now_ms()
if has_factor(factors, passkeys) then return {'second_step', int(now), devices_since(row[2], row[3])} end
if must_set_up(required, apps, teams) then return {'setup', int(now), devices_since(row[2], row[3])} end
if end_idlest(user, sessions, session_prefix, session_epoch, most_sessions, outbox, member, now) > 0 then
  record(audit, 'session_crowded_out', '', address, agent)
end
write_session(session, sessions, session_id, session_epoch, idle, lifetime, address, agent, '', now)
local before = sign_ins(audit)
record(audit, 'signed_in', '', address, agent)
return {'ok', warned_of(user, undos, now), before, int(now)}
