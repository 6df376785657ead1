--- Keep an event until the app has it; a repeated event is not kept again.
--- KEYS[1] delivery
--- KEYS[2] due
--- KEYS[3] listed: the deliveries of the app
--- ARGV[1] id
--- ARGV[2] client
--- ARGV[3] type
--- ARGV[4] sub
--- ARGV[5] occurred_at: ms
--- ARGV[6] details: JSON
--- ARGV[7] keep (number): ms
--- ARGV[8] most (number): deliveries in the list; older ones go when they are done
--- ARGV[9] bound (number): deliveries in the list, done or not
--- ARGV[10] prefix: prefix of a delivery's key, up to the id
--- @reply known
--- @reply ok
--- @derives prefix
--- @idempotent
--- @durable
--- @reserve
--- @include "now"
--- @include "touch"
--- @include "delivery"

if is_delivery(delivery) then
  touch(delivery)
  return {'known'}
end
if redis.call('EXISTS', delivery) == 1 then redis.call('DEL', delivery) end
local now = now_ms()
redis.call('HSET', delivery, 'client', client, 'type', type, 'sub', sub, 'occurred_at', occurred_at,
  'details', details, 'created_at', int(now), 'attempts', '0', 'tries', '0', 'state', 'pending',
  'next_attempt_at', int(now))
redis.call('PEXPIREAT', delivery, int(now + keep))
redis.call('ZADD', due, int(now), id)
redis.call('ZREMRANGEBYSCORE', listed, '-inf', int(now - keep))
-- Deliveries of the same millisecond keep their order too.
local newest = redis.call('ZRANGE', listed, -1, -1, 'WITHSCORES')
redis.call('ZADD', listed, int(math.max(now, newest[2] and tonumber(newest[2]) + 1 or 0)), id)
redis.call('PEXPIREAT', listed, int(now + keep))
local count = redis.call('ZCARD', listed)
if count > most then
  -- A few at a time: later calls remove the rest.
  for _, old in ipairs(redis.call('ZRANGE', listed, 0, 9)) do
    local row = prefix .. old
    if count > most and (count > bound or not is_delivery(row) or redis.call('HGET', row, 'state') ~= 'pending') then
      redis.call('DEL', row)
      redis.call('ZREM', due, old)
      redis.call('ZREM', listed, old)
      count = count - 1
    end
  end
end
return {'ok'}
