--- Read a delivery of an app.
--- KEYS[1] delivery
--- ARGV[1] client
--- @reply not_found
--- @reply ok row
--- @idempotent
--- @include "delivery"

if not is_delivery(delivery) or redis.call('HGET', delivery, 'client') ~= client then return {'not_found'} end
return {'ok', redis.call('HGETALL', delivery)}
