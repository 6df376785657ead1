--- Free what a deleted app left in one shard, in bounded steps; its tokens died with its registration.
--- KEYS[1] app_users
--- ARGV[1] client
--- ARGV[2] shard: what stands before a user id in the keys of the shard
--- ARGV[3] steps: persons freed by one call
--- @reply more
--- @reply done
--- @derives shard
--- @idempotent
--- @include "step"
local app_users = KEYS[1]
local client, shard, steps = ARGV[1], ARGV[2], tonumber(ARGV[3])

local freed = 0
for _, user_id in ipairs(redis.call('SRANDMEMBER', app_users, steps)) do
  local prefix = shard .. user_id .. ':'
  freed = freed + tonumber(redis.call('HGET', prefix .. 'usage:' .. client, 'bytes') or '0')
  for _, noun in ipairs({'grant', 'docs', 'meta', 'index', 'usage'}) do
    redis.call('UNLINK', prefix .. noun .. ':' .. client)
  end
  redis.call('ZREM', prefix .. 'grants', client)
  redis.call('SREM', app_users, user_id)
  if freed > STEP_BYTES then break end
end
return {redis.call('EXISTS', app_users) == 1 and 'more' or 'done'}
