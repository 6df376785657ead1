--- Note in a session that its person sits there: by the password, and a code where there is a second step.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] new_session: what the session is called from now on; the same where it keeps its name
--- KEYS[4] sessions
--- KEYS[5] audit
--- KEYS[6] factors
--- KEYS[7] passkeys
--- KEYS[8] recovery
--- KEYS[9] window
--- ARGV[1] password: the raw hash that was verified
--- ARGV[2] secret: sealed, as it was read; or empty
--- ARGV[3] step: the time step of the code, or empty
--- ARGV[4] digest: of a recovery code, or empty
--- ARGV[5] limit
--- ARGV[6] period: ms
--- ARGV[7] session_id
--- ARGV[8] new_id
--- ARGV[9] idle: ms
--- ARGV[10] proof: ms
--- ARGV[11] address
--- ARGV[12] agent
--- @reply signed_out
--- @reply stale
--- @reply rate_limited reset retry
--- @reply wrong
--- @reply ok session_id
--- @durable
--- @include "session"
--- @include "guess"
--- @include "factors"
local user, session, new_session, sessions, audit = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local factors, passkeys, recovery, window = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local password, secret, step, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local limit, period, session_id, new_id = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
local idle, proof, address, agent = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11], ARGV[12]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if redis.call('HGET', user, 'password') ~= password then return {'stale'} end
local second = has_factor(factors, passkeys)
if second and recovered(session, recovery, proof, now) then
  -- Whoever has no code left must not lose the session, as they would with the answer that gives it another cookie.
  new_id = session_id
elseif second then
  local admitted, reset, retry = take_guess(window, audit, limit, period, address, agent, now)
  if not admitted then return {'rate_limited', reset, retry} end
  if not take_code(factors, recovery, secret, step, digest) then return {'wrong'} end
  redis.call('DEL', window)
end
redis.call('HSET', session, second and 'shown_at' or 'proved_at', int(now))
move_session(session, sessions, session_id, new_session, new_id)
return {'ok', new_id}
