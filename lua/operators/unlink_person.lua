--- Unlink an identity at another server for an operator, unless the person could not sign in without it.
--- KEYS[1] user
--- KEYS[2] identities
--- KEYS[3] audit
--- KEYS[4] passkeys
--- ARGV[1] name: of the index entry
--- ARGV[2] others (json): the names of identities that can sign the person in
--- @reply not_found
--- @reply last
--- @reply ok
--- @durable
--- @reserve
--- @include "audit"
--- @include "identity"

if redis.call('HEXISTS', user, 'status') == 0 then return {'not_found'} end
if redis.call('HEXISTS', identities, name) == 0 then return {'not_found'} end
local another = has_password(user) or redis.call('EXISTS', passkeys) == 1
for _, other in ipairs(others) do
  another = another or (other ~= name and redis.call('HEXISTS', identities, other) == 1)
end
if not another then return {'last'} end
redis.call('HDEL', identities, name)
record(audit, 'identity_unlinked_by_operator', '', '', '')
return {'ok'}
