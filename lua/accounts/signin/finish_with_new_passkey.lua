--- Sign a person in who must have a second step and had none, with a passkey that the browser made. (WebAuthn 7.1)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] passkeys
--- KEYS[7] recovery
--- KEYS[8] undos
--- KEYS[9] outbox
--- KEYS[10] used
--- ARGV[1] session_id
--- ARGV[2] session_epoch: read with the password
--- ARGV[3] at (number): of the password, ms
--- ARGV[4] lasts (number): ms
--- ARGV[5] credential: id, base64url
--- ARGV[6] facts: msgpack of public key, name and transports
--- ARGV[7] count: the passkey's counter of signatures
--- ARGV[8] issued (number): of the challenge, ms
--- ARGV[9] challenge_lasts (number): ms
--- ARGV[10] digests (json): of recovery codes
--- ARGV[11] idle (number): ms
--- ARGV[12] lifetime (number): ms
--- ARGV[13] address
--- ARGV[14] agent
--- ARGV[15] session_prefix: prefix of a session's key, up to the session id
--- ARGV[16] most_sessions (number): of one person
--- ARGV[17] member: the person in the lists of the shard
--- ARGV[18] method: pwd+passkey, or up+passkey after another server
--- ARGV[19] undo_id: of the link that undoes this
--- ARGV[20] undo_lasts (number): ms that the link works
--- ARGV[21] undo_most (number): such links for one address
--- @reply over
--- @reply present
--- @reply used
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
if not take_challenge(used, issued, challenge_lasts, now) then return {'used'} end
local warned = warned_of(user, undos, now)
local undo = undo_first_factor(user, undos, undo_id, undo_lasts, undo_most, now)
redis.call('HSET', passkeys, 'k:' .. credential, facts, 'n:' .. credential, count .. ' 0', 'c:' .. credential, int(now))
local begun = begin_recovery(recovery, digests)
record(audit, 'passkey_added', '', address, agent)
if end_idlest(user, sessions, session_prefix, session_epoch, most_sessions, outbox, member, now) > 0 then
  record(audit, 'session_crowded_out', '', address, agent)
end
write_session(session, sessions, session_id, session_epoch, idle, lifetime, address, agent, method, now)
local before = sign_ins(audit)
record(audit, 'signed_in', '', address, agent)
return {'ok', warned, before, int(now), begun, undo}
