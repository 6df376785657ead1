--- Sign a person in with a code of the authenticator app or a recovery code, after the right password.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] recovery
--- KEYS[7] guesses
--- KEYS[8] undos
--- KEYS[9] outbox
--- ARGV[1] session_id
--- ARGV[2] session_epoch: read with the password
--- ARGV[3] at (number): of the password, ms
--- ARGV[4] lasts (number): ms
--- ARGV[5] secret: sealed, as read; or empty
--- ARGV[6] step: the time step of the code, or empty
--- ARGV[7] digest: of a recovery code, or empty
--- ARGV[8] limit (number): wrong codes before a pause
--- ARGV[9] pause (number): the first one, ms
--- ARGV[10] longest (number): pause, ms
--- ARGV[11] most (number): wrong codes after which no code counts
--- ARGV[12] device: id of the known device, or empty
--- ARGV[13] device_epoch: the session epoch in its cookie
--- ARGV[14] known_at: ms
--- ARGV[15] device_lasts (number): ms
--- ARGV[16] idle (number): ms
--- ARGV[17] lifetime (number): ms
--- ARGV[18] address
--- ARGV[19] agent
--- ARGV[20] session_prefix: prefix of a session's key, up to the session id
--- ARGV[21] most_sessions (number): of one person
--- ARGV[22] member: the person in the lists of the shard
--- ARGV[23] method: otp, or up+otp after another server
--- @reply over
--- @reply stopped
--- @reply rate_limited reset retry
--- @reply wrong told warned
--- @reply ok warned before now
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "session"
--- @include "idlest"
--- @include "guess"
--- @include "factors"
--- @include "undo"

local now = now_ms()
local row = redis.call('HMGET', user, 'status', 'epoch', 'devices')
if row[1] ~= 'active' or row[2] ~= session_epoch or now - at > lasts then return {'over'} end
if not is_known(row[2], row[3], device_epoch, known_at, device_lasts, now) then device = '' end
local word, whose, told = take_guess(guesses, audit, device, limit, pause, longest, most, address, agent, now)
if word == 'stopped' then return {'stopped'} end
if word == 'rate_limited' then return {'rate_limited', whose, told} end
local warned = warned_of(user, undos, now)
if not take_code(factors, recovery, secret, step, digest) then
  record_apart(audit, 'second_step_refused', '', address, agent)
  return {'wrong', told, warned}
end
forgive(guesses, whose)
if end_idlest(user, sessions, session_prefix, session_epoch, most_sessions, outbox, member, now) > 0 then
  record(audit, 'session_crowded_out', '', address, agent)
end
write_session(session, sessions, session_id, session_epoch, idle, lifetime, address, agent, method, now)
if digest ~= '' then redis.call('HSET', session, 'recovered_at', int(now)) end
local before = sign_ins(audit)
record(audit, digest ~= '' and 'signed_in_by_recovery' or 'signed_in', '', address, agent)
return {'ok', warned, before, int(now)}
