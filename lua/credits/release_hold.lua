--- End a hold without a charge; its idempotency key may be used again.
--- KEYS[1] holds
--- KEYS[2] idem: the record of the idempotency key
--- KEYS[3] lease: what the shard may spend of the app's daily limit
--- ARGV[1] hold: its id
--- ARGV[2] leased: '1' if the hold is on the lease too
--- @reply ended
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
--- @include "credits"
--- @include "daily"
--- @include "touch"

local row = redis.call('HGET', holds, hold)
if not row or not read_hold(row) then
  touch(holds)
  return {'ended'}
end
redis.call('HDEL', holds, hold)
if leased == '1' then end_on_lease(lease, hold, 0) end
if redis.call('HGET', idem, 'hold') == hold then redis.call('DEL', idem) end
return {'ok'}
