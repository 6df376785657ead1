--- Add the end of a revoked grant's data to the due list, which layouts before 3 did not have.
--- KEYS[1] grant
--- KEYS[2] docs
--- KEYS[3] due
--- ARGV[1] client
--- ARGV[2] member: the person in the lists of the shard
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
--- @include "due"
--- @include "touch"

local left = redis.call('PTTL', docs)
if left > 0 and redis.call('HEXISTS', grant, 'revoked_at') == 1 then
  put_due(due, client, member, now_ms() + left)
elseif redis.call('EXISTS', grant) == 1 then
  touch(grant)
end
return {'ok'}
