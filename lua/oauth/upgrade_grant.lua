--- Enter the end of what a revoked grant left in the due list, which layouts before 3 did not have.
--- KEYS[1] grant
--- KEYS[2] docs
--- KEYS[3] due
--- ARGV[1] client
--- ARGV[2] member: the person, as the lists of the shard have them
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
