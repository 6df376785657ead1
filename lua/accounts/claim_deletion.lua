--- Begin the planned deletion of a person if it is due, and say how far a deletion has come. One caller gets `due`.
--- KEYS[1] user
--- KEYS[2] users
--- KEYS[3] leaving
--- KEYS[4] audit
--- ARGV[1] member: the person in the lists of the shard
--- @reply due
--- @reply begun
--- @reply later at
--- @reply none
--- @reserve
--- @include "audit"

local row = redis.call('HMGET', user, 'status', 'delete_at')
if not row[1] then
  if redis.call('SISMEMBER', users, member) == 1 or redis.call('EXISTS', leaving) == 1 then return {'begun'} end
  return {'none'}
end
if not row[2] then return {'none'} end
if tonumber(row[2]) > now_ms() then return {'later', row[2]} end
record(audit, 'planned_deletion_began', '', '', '')
-- Without a status the account is half deleted, so this decides.
redis.call('HDEL', user, 'status')
return {'due'}
