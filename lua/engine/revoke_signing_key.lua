--- End a signing key: it neither signs nor verifies from now on. Its state stays for a while, for the list.
--- KEYS[1] signing
--- ARGV[1] kid
--- ARGV[2] channel: of announcements
--- ARGV[3] announced: the word for signing keys
--- @reply not_found
--- @reply ok algorithm
--- @idempotent
--- @durable
--- @reserve
--- @include "now"

local state = redis.call('HGET', signing, kid .. ':state')
if not state then return {'not_found'} end
local algorithm, created, first_use, revoked = string.match(state, '^(%S+) (%d+) (%d+) (%d+)$')
if revoked == '0' then revoked = int(now_ms()) end
redis.call('HSET', signing, kid .. ':state', algorithm .. ' ' .. created .. ' ' .. first_use .. ' ' .. revoked)
redis.call('HDEL', signing, kid .. ':private', kid .. ':public')
redis.call('PUBLISH', channel, announced)
return {'ok', algorithm}
