--- Read a person's factors other than the password.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] factors
--- KEYS[4] passkeys
--- KEYS[5] recovery
--- KEYS[6] undos
--- KEYS[7] identities
--- ARGV[1] idle (number): ms
--- ARGV[2] proof (number): ms
--- @reply signed_out
--- @reply ok now proved recovered secret since rows codes warned name identities_known password_known elsewhere
--- @idempotent
--- @include "session"
--- @include "factors"
--- @include "undo"
--- @include "identity"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local row = redis.call('HMGET', factors, 'secret', 'since')
return {'ok', int(now), proved(session, factors, passkeys, proof, now) and 1 or 0,
  recovered(session, recovery, proof, now) and 1 or 0, row[1] or '', row[2] or '0',
  redis.call('HGETALL', passkeys), redis.call('SCARD', recovery), warned_of(user, undos, now),
  redis.call('HGET', user, 'name'), redis.call('HGETALL', identities), has_password(user) and 1 or 0,
  proved_elsewhere(session, proof, now) and 1 or 0}
