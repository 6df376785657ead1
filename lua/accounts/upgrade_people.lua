--- Upgrade the list of a shard's people from layout 1 to layout 2, and return people whose deletion is unfinished.
--- KEYS[1] users
--- ARGV[1] people: prefix of a person's keys, up to the member of the list
--- @reply ok deleting
--- @derives people
--- @idempotent
--- @durable
--- @reserve

if redis.call('TYPE', users)['ok'] == 'zset' then
  local draft = users .. ':draft'
  for _, user_id in ipairs(redis.call('ZRANGE', users, 0, -1)) do
    redis.call('SADD', draft, string.sub(user_id, 4))
  end
  redis.call('RENAME', draft, users)
end
local deleting = {}
for _, member in ipairs(redis.call('SMEMBERS', users)) do
  local row = people .. member .. ':user'
  if redis.call('EXISTS', row) == 0 then deleting[#deleting + 1] = member end
end
-- As `touch` does for hashes: WAIT needs a write.
redis.call('SADD', users, '?')
redis.call('SREM', users, '?')
return {'ok', deleting}
