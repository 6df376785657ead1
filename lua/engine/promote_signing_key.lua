--- Let a signing key that waits sign from now on. A key that signs already keeps its time.
--- KEYS[1] signing
--- ARGV[1] kid
--- ARGV[2] channel: of announcements
--- ARGV[3] announced: the word for signing keys
--- @reply not_found
--- @reply ok first_use
--- @idempotent
--- @durable
--- @reserve
--- @include "now"

local state = redis.call('HGET', signing, kid .. ':state')
local algorithm, created, first_use = string.match(state or '', '^(%S+) (%d+) (%d+) 0$')
if not algorithm then return {'not_found'} end
first_use = int(math.min(tonumber(first_use), now_ms()))
redis.call('HSET', signing, kid .. ':state', algorithm .. ' ' .. created .. ' ' .. first_use .. ' 0')
redis.call('PUBLISH', channel, announced)
return {'ok', first_use}
