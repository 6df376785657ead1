--- Free a deleted app's data in one shard, in bounded steps; its tokens died with its registration.
--- KEYS[1] app_users
--- KEYS[2] due
--- ARGV[1] client
--- ARGV[2] people: prefix of a person's keys, up to the member of the list
--- ARGV[3] steps (number): persons freed by one call
--- @reply more
--- @reply done
--- @derives people
--- @idempotent
--- @durable
--- @reserve
--- @include "connected"
--- @include "step"
--- @include "due"
--- @include "audit"

local freed = 0
for _, member in ipairs(redis.call('SRANDMEMBER', app_users, steps)) do
  local prefix = people .. member .. ':'
  freed = freed + tonumber(redis.call('HGET', prefix .. 'usage:' .. client, 'bytes') or '0')
  for _, noun in ipairs({'grant', 'docs', 'meta', 'index', 'usage'}) do
    redis.call('UNLINK', prefix .. noun .. ':' .. client)
  end
  -- The next write counts the person's documents of all apps again.
  redis.call('HDEL', prefix .. 'user', app_field(client), kept_out_field(client), 'stored')
  if redis.call('EXISTS', prefix .. 'user') == 1 then record(prefix .. 'audit', 'app_purged_by_operator', client, '', '') end
  redis.call('SREM', app_users, member)
  forget_due(due, client, member)
  if freed > STEP_BYTES then break end
end
return {redis.call('EXISTS', app_users) == 1 and 'more' or 'done'}
