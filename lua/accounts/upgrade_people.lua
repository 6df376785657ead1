--- Bring the list of a shard's people from layout 1 to layout 2, and say whose deletion was begun and not ended.
--- KEYS[1] users
--- ARGV[1] people: what stands before a member of the list in the keys of that person
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
-- As `touch` does it for hashes: there has to be something to wait for.
redis.call('SADD', users, '?')
redis.call('SREM', users, '?')
return {'ok', deleting}
