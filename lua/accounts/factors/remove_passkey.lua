--- Remove a passkey.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- ARGV[1] credential: id, base64url
--- ARGV[2] idle (number): ms
--- ARGV[3] proof (number): ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply unproved
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if redis.call('HEXISTS', passkeys, 'k:' .. credential) == 0 then return {'not_found'} end
-- The recovery codes go with the last factor. Each passkey has three fields.
if redis.call('HLEN', passkeys) == 3 and redis.call('EXISTS', factors) == 0 then redis.call('DEL', recovery) end
redis.call('HDEL', passkeys, 'k:' .. credential, 'n:' .. credential, 'c:' .. credential)
spend_proof(session)
record(audit, 'passkey_removed', '', address, agent)
return {'ok'}
