--- Sign a person in with a passkey's answer: each challenge counts once, and the counter must rise. (WebAuthn 7.2)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- KEYS[5] passkeys
--- KEYS[6] used
--- KEYS[7] undos
--- KEYS[8] outbox
--- ARGV[1] session_id
--- ARGV[2] session_epoch: read with the password or the passkey
--- ARGV[3] credential: id, base64url
--- ARGV[4] count (number): the passkey's counter of signatures
--- ARGV[5] issued (number): of the challenge, ms
--- ARGV[6] lasts (number): ms
--- ARGV[7] idle (number): ms
--- ARGV[8] lifetime (number): ms
--- ARGV[9] address
--- ARGV[10] agent
--- ARGV[11] session_prefix: prefix of a session's key, up to the session id
--- ARGV[12] most_sessions (number): of one person
--- ARGV[13] method: passkey; pwd+passkey after the password, up+passkey after another server
--- ARGV[14] member: the person in the lists of the shard
--- @reply over
--- @reply used
--- @reply regressed
--- @reply ok warned before now
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "session"
--- @include "idlest"
--- @include "audit"
--- @include "factors"
--- @include "undo"

local now = now_ms()
local row = redis.call('HMGET', user, 'status', 'epoch')
local last = redis.call('HGET', passkeys, 'n:' .. credential)
if row[1] ~= 'active' or row[2] ~= session_epoch or not last then return {'over'} end
if not take_challenge(used, issued, lasts, now) then return {'used'} end
if not count_on(passkeys, credential, last, count, now) then
  record(audit, 'passkey_copied', '', address, agent)
  return {'regressed'}
end
if end_idlest(user, sessions, session_prefix, session_epoch, most_sessions, outbox, member, now) > 0 then
  record(audit, 'session_crowded_out', '', address, agent)
end
write_session(session, sessions, session_id, session_epoch, idle, lifetime, address, agent, method, now)
local before = sign_ins(audit)
record(audit, 'signed_in_by_passkey', '', address, agent)
return {'ok', warned_of(user, undos, now), before, int(now)}
