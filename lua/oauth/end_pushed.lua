--- End a pushed authorization request, which gets its answer now. (RFC 9126 7.3)
--- KEYS[1] pushed
--- KEYS[2] all_pushed
--- ARGV[1] id
--- ARGV[2] kept (number): ms in which it can be reopened, if the answer is refused; 0: it can't
--- @reply gone
--- @reply ok
--- @reserve
--- @include "now"
--- @include "pushed"

local left = redis.call('PTTL', pushed)
local row = redis.call('HMGET', pushed, 'ended', 'network')
redis.call('ZREM', all_pushed, entry_of(id, row[2]))
if left <= 0 or row[1] then return {'gone'} end
if kept == 0 then
  redis.call('DEL', pushed)
else
  local now = now_ms()
  redis.call('HSET', pushed, 'ended', int(now + left))
  redis.call('PEXPIREAT', pushed, int(now + math.min(left, kept)))
end
return {'ok'}
