--- Link an identity at another server to the account with the same address, which both servers verified.
--- The reservation names the person already. An account with a second step is not linked: nobody has shown that step.
--- KEYS[1] user
--- KEYS[2] identities
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] undos
--- ARGV[1] name: of the index entry
--- ARGV[2] text: issuer and subject
--- ARGV[3] label
--- ARGV[4] most (number): identities of one person
--- ARGV[5] email: the address that the other server verified
--- ARGV[6] address
--- ARGV[7] agent
--- ARGV[8] undo_id: of the link that undoes this
--- ARGV[9] undo_lasts (number): ms that the link works
--- ARGV[10] undo_most (number): such links for one address
--- ARGV[11] fresh: '1' for an account that was made for this identity just now
--- @reply refused
--- @reply full
--- @reply ok undo warned
--- @durable
--- @include "audit"
--- @include "factors"
--- @include "identity"
--- @include "first_factor"

local row = redis.call('HMGET', user, 'status', 'email', 'verified')
if row[1] ~= 'active' or row[2] ~= email or row[3] ~= '1' then return {'refused'} end
if has_factor(factors, passkeys) then return {'refused'} end
if redis.call('HLEN', identities) >= most then return {'full'} end
local now, undo = now_ms(), ''
local warned = warned_of(user, undos, now)
if fresh ~= '1' then undo = undo_first_factor(user, undos, undo_id, undo_lasts, undo_most, now) end
write_identity(identities, name, text, int(now), '0', label)
if fresh ~= '1' then record(audit, 'identity_linked', '', address, agent) end
return {'ok', undo, warned}
