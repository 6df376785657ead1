--- Make a delivery of an app due now, whatever its state, unless an attempt is in progress.
--- KEYS[1] delivery
--- KEYS[2] due
--- ARGV[1] id
--- ARGV[2] client
--- @reply not_found
--- @reply running
--- @reply ok
--- @reserve
--- @include "now"
--- @include "delivery"

if not is_delivery(delivery) then return {'not_found'} end
local row = redis.call('HMGET', delivery, 'client', 'state', 'next_attempt_at')
if row[1] ~= client then return {'not_found'} end
if row[2] == 'pending' and not row[3] then return {'running'} end
local now = int(now_ms())
redis.call('HSET', delivery, 'state', 'pending', 'tries', '0', 'next_attempt_at', now)
redis.call('ZADD', due, now, id)
return {'ok'}
