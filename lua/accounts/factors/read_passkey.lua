--- Read a passkey's public key, and the session epoch that a sign-in is bound to. Ends a suspension that is over.
--- KEYS[1] user
--- KEYS[2] passkeys
--- KEYS[3] audit
--- ARGV[1] credential: id, base64url
--- @reply unknown
--- @reply suspended facts suspended_reason
--- @reply ok now session_epoch facts
--- @idempotent
--- @include "suspension"

local row = redis.call('HMGET', user, 'status', 'epoch', 'suspended_until', 'suspended_reason')
local facts = redis.call('HGET', passkeys, 'k:' .. credential)
if not row[1] or not facts then return {'unknown'} end
if status_now(user, audit, row[1], row[3], now_ms()) ~= 'active' then return {'suspended', facts, row[4] or ''} end
return {'ok', int(now_ms()), row[2], facts}
