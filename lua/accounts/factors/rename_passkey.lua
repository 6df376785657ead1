--- Give a passkey another name.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] activity
--- KEYS[4] factors
--- KEYS[5] passkeys
--- ARGV[1] credential: id, base64url
--- ARGV[2] before: the facts, as read
--- ARGV[3] facts: the same with the new name
--- ARGV[4] idle (number): ms
--- ARGV[5] proof (number): ms
--- ARGV[6] address
--- ARGV[7] agent
--- @reply signed_out
--- @reply unproved
--- @reply not_found
--- @reply ok
--- @include "session"
--- @include "audit"
--- @include "factors"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
-- A passkey that was removed or replaced meanwhile must not be written back.
if redis.call('HGET', passkeys, 'k:' .. credential) ~= before then return {'not_found'} end
redis.call('HSET', passkeys, 'k:' .. credential, facts)
record(activity, 'passkey_renamed', '', address, agent)
return {'ok'}
