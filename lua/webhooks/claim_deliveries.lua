--- Begin an attempt at each due delivery; nobody else gets it until the lease ends.
--- KEYS[1] due
--- ARGV[1] prefix: prefix of a delivery's key, up to the id
--- ARGV[2] most (number)
--- ARGV[3] lease (number): ms
--- @reply ok rows
--- @derives prefix
--- @reserve
--- @include "now"
--- @include "delivery"

-- A counter that is not a number starts again.
local function count(row, name)
  if type(redis.pcall('HINCRBY', row, name, 1)) == 'table' then redis.call('HSET', row, name, '1') end
end

local now, rows = now_ms(), {}
for _, id in ipairs(redis.call('ZRANGE', due, '-inf', int(now), 'BYSCORE', 'LIMIT', '0', int(most))) do
  local row = prefix .. id
  if is_delivery(row) and redis.call('HGET', row, 'state') == 'pending' then
    redis.call('ZADD', due, int(now + lease), id)
    count(row, 'attempts')
    count(row, 'tries')
    redis.call('HSET', row, 'last_attempt_at', int(now))
    -- An attempt in progress has no next one.
    redis.call('HDEL', row, 'next_attempt_at')
    rows[#rows + 1] = {id, redis.call('HGETALL', row)}
  else
    redis.call('ZREM', due, id)
  end
end
return {'ok', rows}
