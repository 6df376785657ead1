--- Hold what a signed-in person typed against the account: the password, and a code where there is a second step.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- KEYS[7] window
--- ARGV[1] password: the raw hash that was verified
--- ARGV[2] secret: sealed, as it was read; or empty
--- ARGV[3] step: the time step of the code, or empty
--- ARGV[4] digest: of a recovery code, or empty
--- ARGV[5] limit
--- ARGV[6] period: ms
--- ARGV[7] idle: ms
--- ARGV[8] address
--- ARGV[9] agent
--- @reply signed_out
--- @reply stale
--- @reply rate_limited reset retry
--- @reply wrong
--- @reply ok
--- @include "session"
--- @include "guess"
--- @include "factors"
local user, session, audit, factors, passkeys = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local recovery, window = KEYS[6], KEYS[7]
local password, secret, step, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local limit, period, idle, address, agent = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if redis.call('HGET', user, 'password') ~= password then return {'stale'} end
if has_factor(factors, passkeys) then
  local admitted, reset, retry = take_guess(window, audit, limit, period, address, agent, now)
  if not admitted then return {'rate_limited', reset, retry} end
  if not take_code(factors, recovery, secret, step, digest) then return {'wrong'} end
  redis.call('DEL', window)
end
return {'ok'}
