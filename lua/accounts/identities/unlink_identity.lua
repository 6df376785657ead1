--- Unlink an identity at another server, unless the person could not sign in without it.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] identities
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] passkeys
--- ARGV[1] name: of the index entry
--- ARGV[2] others (json): the names of identities that can sign the person in
--- ARGV[3] idle (number): ms
--- ARGV[4] proof (number): ms
--- ARGV[5] address
--- ARGV[6] agent
--- @reply signed_out
--- @reply unproved
--- @reply not_found
--- @reply last
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"
--- @include "identity"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if redis.call('HEXISTS', identities, name) == 0 then return {'not_found'} end
local another = has_password(user) or redis.call('EXISTS', passkeys) == 1
for _, other in ipairs(others) do
  another = another or (other ~= name and redis.call('HEXISTS', identities, other) == 1)
end
if not another then return {'last'} end
redis.call('HDEL', identities, name)
spend_proof(session)
record(audit, 'identity_unlinked', '', address, agent)
return {'ok'}
