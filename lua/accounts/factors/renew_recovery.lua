--- Replace a person's recovery codes; the old ones stop working.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- ARGV[1] digests (json): of the codes
--- ARGV[2] idle (number): ms
--- ARGV[3] proof (number): ms
--- ARGV[4] address
--- ARGV[5] agent
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
if not has_factor(factors, passkeys) then return {'absent'} end
local before = redis.call('SMEMBERS', recovery)
for _, digest in ipairs(digests) do redis.call('SADD', recovery, digest) end
for _, digest in ipairs(before) do redis.call('SREM', recovery, digest) end
spend_proof(session)
record(audit, 'recovery_renewed', '', address, agent)
return {'ok'}
