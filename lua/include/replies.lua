--- @include "now"
-- Replies kept under idempotency keys, in all so many bytes for a person, the oldest dropped first. `replies` (zset):
-- 'bytes name' by the time it was kept; the sum stands in `balance` as reply_bytes. Each reply ends by its own expiry.

local function forget_reply(balance, replies, member)
  redis.call('ZREM', replies, member)
  redis.call('HINCRBY', balance, 'reply_bytes', '-' .. string.match(member, '^%d+'))
end

-- At most 200 make way for one; where that is not enough it is not kept.
local function keep_reply(balance, replies, reply, prefix, name, sealed, keep, max_bytes, now)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', replies, '-inf', int(now - keep), 'LIMIT', '0', '100')) do
    forget_reply(balance, replies, member)
  end
  local bytes = tonumber(redis.call('HGET', balance, 'reply_bytes') or '0')
  for _, member in ipairs(redis.call('ZRANGE', replies, 0, 199)) do
    if bytes + #sealed <= max_bytes then break end
    redis.call('UNLINK', prefix .. string.match(member, '^%d+ (.*)$'))
    bytes = bytes - tonumber(string.match(member, '^%d+'))
    forget_reply(balance, replies, member)
  end
  if bytes + #sealed > max_bytes then return end
  redis.call('SET', reply, sealed, 'PXAT', int(now + keep))
  redis.call('ZADD', replies, int(now), int(#sealed) .. ' ' .. name)
  redis.call('HINCRBY', balance, 'reply_bytes', int(#sealed))
end
