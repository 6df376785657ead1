--- Count the given-up deliveries of an app, and make them due now if asked to.
--- KEYS[1] listed: the deliveries of the app
--- KEYS[2] due
--- ARGV[1] prefix: prefix of a delivery's key, up to the id
--- ARGV[2] bound (number): deliveries in the list
--- ARGV[3] replay: 1 to make them due, or empty
--- @reply ok count
--- @derives prefix
--- @reserve
--- @include "now"
--- @include "delivery"

local count, now = 0, int(now_ms())
for _, id in ipairs(redis.call('ZREVRANGE', listed, 0, int(bound - 1))) do
  local row = prefix .. id
  if is_delivery(row) and redis.call('HGET', row, 'state') == 'failed' then
    count = count + 1
    if replay ~= '' then
      redis.call('HSET', row, 'state', 'pending', 'tries', '0', 'next_attempt_at', now)
      redis.call('ZADD', due, now, id)
    end
  end
end
return {'ok', int(count)}
