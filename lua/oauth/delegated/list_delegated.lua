--- List the live delegated tokens of an app, for the export of a person's account. (RFC 8693)
--- KEYS[1] grant
--- ARGV[1] prefix: prefix of the person's keys, up to the noun
--- @reply ok rows
--- @derives prefix
--- @idempotent
--- @include "tree"

local given = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'delegated')
if not given[3] or given[2] then return {'ok', {}} end
return {'ok', tree_of(prefix, given[3], given[1], now_ms())}
