--- End a pushed authorization request, which gets its answer now. (RFC 9126 7.3)
--- KEYS[1] pushed
--- KEYS[2] all_pushed
--- ARGV[1] id
--- ARGV[2] kept (number): ms in which it can be reopened, if the answer is refused; 0: it can't
--- @reply gone
--- @reply ok
--- @reserve
--- @include "now"

local left = redis.call('PTTL', pushed)
redis.call('ZREM', all_pushed, id)
if left <= 0 or redis.call('HEXISTS', pushed, 'ended') == 1 then return {'gone'} end
if kept == 0 then
  redis.call('DEL', pushed)
else
  local now = now_ms()
  redis.call('HSET', pushed, 'ended', int(now + left))
  redis.call('PEXPIREAT', pushed, int(now + math.min(left, kept)))
end
return {'ok'}
