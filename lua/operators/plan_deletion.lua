--- Plan the deletion of a person for an operator; the person is disabled at once.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] sessions
--- KEYS[4] outbox
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] session_prefix: prefix of a session's key, up to the session id
--- ARGV[3] reason: for the person; or empty
--- ARGV[4] at: when the account is deleted, ms
--- @reply not_found
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "ended"
--- @include "suspension"

local row, now = redis.call('HMGET', user, 'status', 'suspended_until'), now_ms()
if not row[1] then return {'not_found'} end
local status, told = status_now(user, audit, row[1], row[2], now), 0
redis.call('HSET', user, 'delete_at', at)
if status ~= 'active' and row[2] then
  -- An earlier suspension stays, but its end must not let the person in, unless the deletion is cancelled.
  redis.call('HSET', user, 'delete_until', row[2])
  redis.call('HDEL', user, 'suspended_until')
end
if status == 'active' then
  told = tell_of_ends(user, sessions, session_prefix, '', outbox, member, now)
  redis.call('HSET', user, 'status', 'disabled', 'delete_was', status)
  redis.call('HINCRBY', user, 'epoch', 1)
  if reason ~= '' then redis.call('HSET', user, 'suspended_reason', reason) end
end
record(audit, 'deletion_planned_by_operator', '', '', '')
return {'ok', told}
