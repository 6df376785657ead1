--- Disable, suspend (with a reason) or enable a person; disabling ends all their tokens and sessions at once.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] sessions
--- KEYS[4] outbox
--- ARGV[1] status: active or disabled
--- ARGV[2] member: the person in the lists of the shard
--- ARGV[3] session_prefix: prefix of a session's key, up to the session id
--- ARGV[4] reason: of a suspension, for the person; or empty
--- ARGV[5] note: about a suspension, for operators; or empty
--- ARGV[6] ends: when a suspension ends, ms; or empty
--- @reply not_found
--- @reply leaving
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "ended"

local row = redis.call('HMGET', user, 'status', 'suspended_reason', 'suspended_note', 'suspended_until', 'delete_at')
local present = row[1]
if not present then return {'not_found'} end
if row[5] then return {'leaving'} end
local suspended = reason ~= '' and (row[2] ~= reason or (row[3] or '') ~= note or (row[4] or '') ~= ends)
local told = 0
if present ~= status then
  told = tell_of_ends(user, sessions, session_prefix, '', outbox, member, now_ms())
end
-- Written even if it is the same: an answer that waits for replicas needs a write that they can confirm.
redis.call('HSET', user, 'status', status)
for field, value in pairs({suspended_reason = reason, suspended_note = note, suspended_until = ends}) do
  if value == '' then redis.call('HDEL', user, field) else redis.call('HSET', user, field, value) end
end
if present ~= status then
  -- Earlier sessions must not revive when the person is enabled again.
  redis.call('HINCRBY', user, 'epoch', 1)
  if reason == '' then
    record(audit, status == 'active' and 'enabled_by_operator' or 'disabled_by_operator', '', '', '')
  end
end
if suspended then record(audit, 'suspended_by_operator', '', '', '') end
return {'ok', told}
