--- Free the deliveries of an app that is deleted, and the attempts at them, in bounded steps.
--- KEYS[1] due
--- KEYS[2] listed: the deliveries of the app
--- KEYS[3] attempts: at deliveries of the app
--- KEYS[4] newest: the deliveries of all apps
--- KEYS[5] failing: endpoints whose last attempt failed
--- ARGV[1] prefix: prefix of a delivery's key, up to the id
--- ARGV[2] steps (number)
--- ARGV[3] client
--- @reply more
--- @reply done
--- @derives prefix
--- @idempotent

for _, id in ipairs(redis.call('ZRANGE', listed, 0, steps - 1)) do
  redis.call('DEL', prefix .. id)
  redis.call('ZREM', due, id)
  redis.call('ZREM', listed, id)
  redis.call('ZREM', newest, id)
end
redis.call('DEL', attempts)
-- An attempt between two steps may have noted a failure again.
redis.call('ZREM', failing, client .. ' events', client .. ' logout')
return {redis.call('EXISTS', listed) == 1 and 'more' or 'done'}
