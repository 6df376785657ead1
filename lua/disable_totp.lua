--- Switch the authenticator app off, with a code of it or a recovery code.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- KEYS[7] window
--- ARGV[1] secret: sealed, as it was read
--- ARGV[2] step: the time step of the code, or empty
--- ARGV[3] digest: of a recovery code, or empty
--- ARGV[4] limit
--- ARGV[5] period: ms
--- ARGV[6] idle: ms
--- ARGV[7] proof: ms
--- ARGV[8] address
--- ARGV[9] agent
--- @reply signed_out
--- @reply unproved
--- @reply absent
--- @reply rate_limited reset retry
--- @reply wrong
--- @reply ok
--- @include "session"
--- @include "guess"
--- @include "factors"
local user, session, audit, factors, passkeys = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local recovery, window = KEYS[6], KEYS[7]
local secret, step, digest, limit, period = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local idle, proof, address, agent = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, proof, now) then return {'unproved'} end
if redis.call('EXISTS', factors) == 0 then return {'absent'} end
local admitted, reset, retry = take_guess(window, audit, limit, period, address, agent, now)
if not admitted then return {'rate_limited', reset, retry} end
if not take_code(factors, recovery, secret, step, digest) then return {'wrong'} end
-- With the last factor the recovery codes go.
if redis.call('EXISTS', passkeys) == 0 then redis.call('DEL', recovery) end
redis.call('DEL', window, factors)
record(audit, 'totp_disabled', '', address, agent)
return {'ok'}
