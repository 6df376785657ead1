--- End a hold without a charge; its idempotency key may be used again.
--- KEYS[1] holds
--- KEYS[2] idem: the record of the idempotency key
--- ARGV[1] hold: its id
--- @reply ended
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
--- @include "credits"
--- @include "touch"

local row = redis.call('HGET', holds, hold)
if not row or not read_hold(row) then
  touch(holds)
  return {'ended'}
end
redis.call('HDEL', holds, hold)
if redis.call('HGET', idem, 'hold') == hold then redis.call('DEL', idem) end
return {'ok'}
