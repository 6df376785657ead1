--- Link an identity at another server, whose reservation names the person already, to the account of a live session.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] identities
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] passkeys
--- KEYS[7] undos
--- ARGV[1] name: of the index entry
--- ARGV[2] text: issuer and subject
--- ARGV[3] label
--- ARGV[4] most (number): identities of one person
--- ARGV[5] idle (number): ms
--- ARGV[6] proof (number): ms
--- ARGV[7] address
--- ARGV[8] agent
--- ARGV[9] undo_id: of the link that undoes this
--- ARGV[10] undo_lasts (number): ms that the link works
--- ARGV[11] undo_most (number): such links for one address
--- @reply signed_out
--- @reply unproved
--- @reply present
--- @reply full
--- @reply ok undo warned
--- @durable
--- @include "session"
--- @include "audit"
--- @include "factors"
--- @include "identity"
--- @include "first_factor"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if redis.call('HEXISTS', identities, name) == 1 then return {'present'} end
if redis.call('HLEN', identities) >= most then return {'full'} end
local warned = warned_of(user, undos, now)
local undo = undo_first_factor(user, undos, undo_id, undo_lasts, undo_most, now)
write_identity(identities, name, text, int(now), '0', label)
spend_proof(session)
record(audit, 'identity_linked', '', address, agent)
return {'ok', undo, warned}
