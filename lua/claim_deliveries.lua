--- Begin an attempt at each delivery that is due; nobody else gets it until the lease is over.
--- KEYS[1] due
--- ARGV[1] prefix: what stands before an id in the key of a delivery
--- ARGV[2] most
--- ARGV[3] lease: ms
--- @reply ok rows
--- @derives prefix
--- @include "now"
local due = KEYS[1]
local prefix, most, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local now, rows = now_ms(), {}
for _, id in ipairs(redis.call('ZRANGE', due, '-inf', int(now), 'BYSCORE', 'LIMIT', '0', int(most))) do
  if redis.call('HGET', prefix .. id, 'state') == 'pending' then
    redis.call('ZADD', due, int(now + lease), id)
    redis.call('HINCRBY', prefix .. id, 'attempts', 1)
    redis.call('HINCRBY', prefix .. id, 'tries', 1)
    redis.call('HSET', prefix .. id, 'last_attempt_at', int(now))
    -- While an attempt is under way, there is no next one.
    redis.call('HDEL', prefix .. id, 'next_attempt_at')
    rows[#rows + 1] = {id, redis.call('HGETALL', prefix .. id)}
  else
    redis.call('ZREM', due, id)
  end
end
return {'ok', rows}
