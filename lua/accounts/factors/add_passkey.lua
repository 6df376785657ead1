--- Add a passkey that answered a challenge of this session. (WebAuthn 7.1)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- KEYS[7] used
--- KEYS[8] undos
--- ARGV[1] credential: id, base64url
--- ARGV[2] facts: msgpack of public key, name and transports
--- ARGV[3] count: the passkey's counter of signatures
--- ARGV[4] issued (number): of the challenge, ms
--- ARGV[5] lasts (number): ms
--- ARGV[6] most (number): passkeys a person may have
--- ARGV[7] digests (json): of recovery codes
--- ARGV[8] idle (number): ms
--- ARGV[9] proof (number): ms
--- ARGV[10] address
--- ARGV[11] agent
--- ARGV[12] undo_id: of the link that undoes a first second step
--- ARGV[13] undo_lasts (number): ms that the link works
--- ARGV[14] undo_most (number): such links for one address
--- @reply signed_out
--- @reply unproved
--- @reply used
--- @reply full
--- @reply present
--- @reply ok begun undo
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"
--- @include "first_factor"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if not take_challenge(used, issued, lasts, now) then return {'used'} end
if redis.call('HEXISTS', passkeys, 'k:' .. credential) == 1 then return {'present'} end
-- Each passkey has three fields: the facts, the counter with the last use, and when it was added.
if redis.call('HLEN', passkeys) >= 3 * most then return {'full'} end
local undo = ''
if not has_factor(factors, passkeys) then
  undo = undo_first_factor(user, undos, undo_id, undo_lasts, undo_most, now)
end
redis.call('HSET', passkeys, 'k:' .. credential, facts, 'n:' .. credential, count .. ' 0', 'c:' .. credential, int(now))
spend_proof(session)
record(audit, 'passkey_added', '', address, agent)
return {'ok', begin_recovery(recovery, digests), undo}
