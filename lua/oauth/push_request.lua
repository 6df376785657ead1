--- Keep a pushed authorization request until the browser arrives with it. (RFC 9126 2.2)
--- KEYS[1] pushed
--- KEYS[2] all_pushed: the app's pushed requests, by the times at which they end
--- ARGV[1] id
--- ARGV[2] params: the request, as a form
--- ARGV[3] kept (number): ms
--- ARGV[4] longest (number): ms, the most that a request is kept
--- ARGV[5] most (number): requests of one app
--- ARGV[6] prefix: of the keys of the app's pushed requests
--- ARGV[7] ended: ids of requests that have ended, with spaces between
--- @reply full ends
--- @reply ok
--- @derives prefix
--- @include "now"

local function drop_ended()
  for one in string.gmatch(ended, '%S+') do
    redis.call('DEL', prefix .. one)
    redis.call('ZREM', all_pushed, one)
  end
end

local now = now_ms()
local live = '(' .. int(now)
local function is_full() return redis.call('ZCOUNT', all_pushed, live, '+inf') >= most end
if is_full() then drop_ended() end
if is_full() then
  return {'full', redis.call('ZRANGE', all_pushed, live, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]}
end
-- First what a full store refuses.
redis.call('HSET', pushed, 'params', params)
redis.call('PEXPIREAT', pushed, int(now + kept))
redis.call('ZADD', all_pushed, int(now + kept), id)
redis.call('PEXPIREAT', all_pushed, int(now + longest))
redis.call('ZREMRANGEBYSCORE', all_pushed, '-inf', int(now))
drop_ended()
return {'ok'}
