--- Sign a person in who must have a second step and had none, with the first code of a new authenticator app.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] passkeys
--- KEYS[7] recovery
--- KEYS[8] undos
--- KEYS[9] outbox
--- ARGV[1] session_id
--- ARGV[2] session_epoch: read with the password
--- ARGV[3] at (number): of the password, ms
--- ARGV[4] lasts (number): ms
--- ARGV[5] secret: sealed
--- ARGV[6] step: the time step of the code
--- ARGV[7] digests (json): of recovery codes
--- ARGV[8] idle (number): ms
--- ARGV[9] lifetime (number): ms
--- ARGV[10] address
--- ARGV[11] agent
--- ARGV[12] session_prefix: prefix of a session's key, up to the session id
--- ARGV[13] most_sessions (number): of one person
--- ARGV[14] member: the person in the lists of the shard
--- ARGV[15] method: otp, or up+otp after another server
--- ARGV[16] undo_id: of the link that undoes this
--- ARGV[17] undo_lasts (number): ms that the link works
--- ARGV[18] undo_most (number): such links for one address
--- @reply over
--- @reply present
--- @reply ok warned before now begun undo
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "session"
--- @include "idlest"
--- @include "audit"
--- @include "factors"
--- @include "undo"
--- @include "first_factor"

local now = now_ms()
local row = redis.call('HMGET', user, 'status', 'epoch')
if row[1] ~= 'active' or row[2] ~= session_epoch or now - at > lasts then return {'over'} end
-- Whoever has a second step shows that one.
if has_factor(factors, passkeys) then return {'present'} end
local warned = warned_of(user, undos, now)
local undo = undo_first_factor(user, undos, undo_id, undo_lasts, undo_most, now)
redis.call('HSET', factors, 'secret', secret, 'step', step, 'since', int(now))
local begun = begin_recovery(recovery, digests)
record(audit, 'totp_enabled', '', address, agent)
if end_idlest(user, sessions, session_prefix, session_epoch, most_sessions, outbox, member, now) > 0 then
  record(audit, 'session_crowded_out', '', address, agent)
end
write_session(session, sessions, session_id, session_epoch, idle, lifetime, address, agent, method, now)
local before = sign_ins(audit)
record(audit, 'signed_in', '', address, agent)
return {'ok', warned, before, int(now), begun, undo}
