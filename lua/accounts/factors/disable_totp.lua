--- Disable the authenticator app.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- ARGV[1] idle (number): ms
--- ARGV[2] proof (number): ms
--- ARGV[3] address
--- ARGV[4] agent
--- @reply signed_out
--- @reply unproved
--- @reply absent
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if redis.call('EXISTS', factors) == 0 then return {'absent'} end
-- The recovery codes go with the last factor.
if redis.call('EXISTS', passkeys) == 0 then redis.call('DEL', recovery) end
redis.call('DEL', factors)
spend_proof(session)
record(audit, 'totp_disabled', '', address, agent)
return {'ok'}
