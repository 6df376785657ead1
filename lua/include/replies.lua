--- @include "now"
-- Replies kept under idempotency keys, with a bound on their bytes for each person; the oldest are dropped first. `replies`
-- (zset): 'bytes name' by the time it was kept; while it exists, reply_bytes in `balance` is the sum. Each reply has its own
-- expiry, and the list ends with the last reply.

-- At most 200 replies make room for one; if that is not enough, the new one is not kept.
local function keep_reply(balance, replies, reply, prefix, name, sealed, keep, max_bytes, now)
  local bytes = redis.call('EXISTS', replies) == 1 and tonumber(redis.call('HGET', balance, 'reply_bytes')) or 0
  local oldest = redis.call('ZRANGE', replies, 0, 199, 'WITHSCORES')
  for position = 1, #oldest, 2 do
    local member, ended = oldest[position], tonumber(oldest[position + 1]) + keep <= now
    if not ended and bytes + #sealed <= max_bytes then break end
    local size, its = string.match(member, '^(%d+) (.*)$')
    -- An expired reply is gone, and its name may belong to a newer one.
    if not ended then redis.call('UNLINK', prefix .. its) end
    redis.call('ZREM', replies, member)
    bytes = bytes - tonumber(size)
  end
  if bytes + #sealed <= max_bytes then
    redis.call('SET', reply, sealed, 'PXAT', int(now + keep))
    -- An expired reply with the same name and size may still be counted.
    if redis.call('ZADD', replies, int(now), int(#sealed) .. ' ' .. name) == 1 then bytes = bytes + #sealed end
    if redis.call('PTTL', replies) < keep then redis.call('PEXPIREAT', replies, int(now + keep)) end
  end
  redis.call('HSET', balance, 'reply_bytes', int(bytes))
end
