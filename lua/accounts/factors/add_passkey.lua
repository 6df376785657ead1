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
--- ARGV[4] issued: of the challenge, ms
--- ARGV[5] lasts: ms
--- ARGV[6] most: passkeys a person may have
--- ARGV[7] digests: of recovery codes, JSON
--- ARGV[8] idle: ms
--- ARGV[9] proof: ms
--- ARGV[10] address
--- ARGV[11] agent
--- ARGV[12] undo_id: of the link that takes a first second step back
--- ARGV[13] undo_lasts: ms that it works
--- ARGV[14] undo_most: such links for one address
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
local user, session, audit, factors, passkeys = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local recovery, used, undos = KEYS[6], KEYS[7], KEYS[8]
local credential, facts, count, issued, lasts = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local most, digests, idle, proof = tonumber(ARGV[6]), cjson.decode(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local address, agent = ARGV[10], ARGV[11]
local undo_id, undo_lasts, undo_most = ARGV[12], tonumber(ARGV[13]), tonumber(ARGV[14])

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if not take_challenge(used, issued, lasts, now) then return {'used'} end
if redis.call('HEXISTS', passkeys, 'k:' .. credential) == 1 then return {'present'} end
-- Three fields each: the facts, the counter with the last use, and when it was added.
if redis.call('HLEN', passkeys) >= 3 * most then return {'full'} end
local undo = ''
if not has_factor(factors, passkeys) then
  undo = undo_first_factor(user, undos, undo_id, undo_lasts, undo_most, now)
end
redis.call('HSET', passkeys, 'k:' .. credential, facts, 'n:' .. credential, count .. ' 0', 'c:' .. credential, int(now))
spend_proof(session)
record(audit, 'passkey_added', '', address, agent)
return {'ok', begin_recovery(recovery, digests), undo}
