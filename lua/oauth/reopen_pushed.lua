--- Open an ended pushed authorization request again, because its answer was refused.
--- KEYS[1] pushed
--- KEYS[2] all_pushed
--- ARGV[1] id
--- ARGV[2] longest (number): ms, the most that a request is kept
--- @reply gone
--- @reply ok
--- @reserve
--- @include "now"
--- @include "pushed"

local row = redis.call('HMGET', pushed, 'ended', 'network')
local ends = row[1]
if not ends then return {'gone'} end
redis.call('HDEL', pushed, 'ended')
redis.call('PEXPIREAT', pushed, ends)
redis.call('ZADD', all_pushed, ends, entry_of(id, row[2]))
redis.call('PEXPIREAT', all_pushed, int(now_ms() + longest))
return {'ok'}
