--- Read a passkey's public key, and the session epoch that a sign-in is bound to.
--- KEYS[1] user
--- KEYS[2] passkeys
--- ARGV[1] credential: id, base64url
--- @reply unknown
--- @reply ok now session_epoch facts
--- @idempotent
--- @include "now"

local row = redis.call('HMGET', user, 'status', 'epoch')
local facts = redis.call('HGET', passkeys, 'k:' .. credential)
if row[1] ~= 'active' or not facts then return {'unknown'} end
return {'ok', int(now_ms()), row[2], facts}
