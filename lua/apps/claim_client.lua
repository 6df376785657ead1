--- Take a place for an app that registers itself, and use up its registration token.
--- KEYS[1] unused: apps that nobody has allowed yet, by their end (ms)
--- KEYS[2] used: apps that somebody has allowed, by their last use (ms)
--- KEYS[3] tokens: by digest, 'uses ends made name'; uses is '-' without a limit, ends 0 without an end
--- ARGV[1] client
--- ARGV[2] lasts (number): ms until the app ends if nobody allows it
--- ARGV[3] most (number): apps of both lists
--- ARGV[4] token: its digest, or empty if none is needed
--- @reply refused
--- @reply full
--- @reply ok evicted
--- @include "now"

local now = now_ms()
local row = token ~= '' and redis.call('HGET', tokens, token)
local uses, ends, rest
if token ~= '' then
  if not row then return {'refused'} end
  uses, ends, rest = string.match(row, '^(%S+) (%d+) (.*)$')
  if (ends ~= '0' and tonumber(ends) <= now) or uses == '0' then return {'refused'} end
end
-- The rows of these have ended by themselves.
redis.call('ZREMRANGEBYSCORE', unused, '-inf', int(now))
local evicted = ''
if not redis.call('ZSCORE', used, client) then
  if not redis.call('ZSCORE', unused, client) and redis.call('ZCARD', unused) + redis.call('ZCARD', used) >= most then
    -- One that nobody has allowed makes room, so a flood of registrations keeps nobody out for long.
    evicted = redis.call('ZRANGE', unused, 0, 0)[1]
    if not evicted then return {'full'} end
    redis.call('ZREM', unused, evicted)
  end
  redis.call('ZADD', unused, int(now + lasts), client)
end
if row and uses ~= '-' then redis.call('HSET', tokens, token, int(tonumber(uses) - 1) .. ' ' .. ends .. ' ' .. rest) end
return {'ok', evicted}
