--- Upgrade an app's list of people in one shard from layout 1 to layout 2.
--- KEYS[1] app_users
--- @reply ok
--- @idempotent
--- @durable
--- @reserve

for _, user_id in ipairs(redis.call('SMEMBERS', app_users)) do
  -- Layout 1 has the whole user id, layout 2 leaves out the three digits of the shard.
  if #user_id == 32 then
    redis.call('SADD', app_users, string.sub(user_id, 4))
    redis.call('SREM', app_users, user_id)
  end
end
-- As `touch` does for hashes: WAIT needs a write.
redis.call('SADD', app_users, '?')
redis.call('SREM', app_users, '?')
return {'ok'}
