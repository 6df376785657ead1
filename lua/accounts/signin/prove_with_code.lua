--- Note in a session that its person re-authenticated with the password and, if there is a second step, a code.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] new_session: the session's key from now on; the same if its id stays
--- KEYS[4] sessions
--- KEYS[5] audit
--- KEYS[6] factors
--- KEYS[7] passkeys
--- KEYS[8] recovery
--- KEYS[9] guesses
--- KEYS[10] undos
--- ARGV[1] password: the raw hash that was verified
--- ARGV[2] secret: sealed, as read; or empty
--- ARGV[3] step: the time step of the code, or empty
--- ARGV[4] digest: of a recovery code, or empty
--- ARGV[5] limit (number): wrong codes before a pause
--- ARGV[6] pause (number): the first one, ms
--- ARGV[7] longest (number): pause, ms
--- ARGV[8] most (number): wrong codes after which no code counts
--- ARGV[9] device: id of the known device, or empty
--- ARGV[10] device_epoch: the session epoch in its cookie
--- ARGV[11] known_at: ms
--- ARGV[12] device_lasts (number): ms
--- ARGV[13] session_id
--- ARGV[14] new_id
--- ARGV[15] idle (number): ms
--- ARGV[16] proof (number): ms
--- ARGV[17] address
--- ARGV[18] agent
--- ARGV[19] elsewhere: '1' for a person without a password, who signed in at another server instead
--- @reply signed_out
--- @reply stale
--- @reply stopped
--- @reply rate_limited reset retry
--- @reply wrong told warned
--- @reply ok session_id
--- @durable
--- @reserve
--- @include "session"
--- @include "guess"
--- @include "factors"
--- @include "undo"
--- @include "identity"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local row = redis.call('HMGET', user, 'password', 'epoch', 'devices')
if row[1] ~= password then return {'stale'} end
if elsewhere == '1' and (has_password(user) or not proved_elsewhere(session, proof, now)) then return {'stale'} end
local second = has_factor(factors, passkeys)
if second and recovered(session, recovery, proof, now) then
  -- Keeps the id: a person without codes must not lose the session if the answer with a new cookie is lost.
  new_id = session_id
elseif second then
  if not is_known(row[2], row[3], device_epoch, known_at, device_lasts, now) then device = '' end
  local word, whose, told = take_guess(guesses, audit, device, limit, pause, longest, most, address, agent, now)
  if word == 'stopped' then return {'stopped'} end
  if word == 'rate_limited' then return {'rate_limited', whose, told} end
  if not take_code(factors, recovery, secret, step, digest) then
    record_apart(audit, 'confirmation_refused', '', address, agent)
    return {'wrong', told, warned_of(user, undos, now)}
  end
  forgive(guesses, whose)
end
redis.call('HDEL', session, 'elsewhere_at')
redis.call('HSET', session, second and 'shown_at' or 'proved_at', int(now))
move_session(session, sessions, session_id, new_session, new_id)
record_apart(audit, 'confirmed', '', address, agent)
return {'ok', new_id}
