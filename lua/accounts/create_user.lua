--- Write a new person; the reservation of the e-mail address already names this id.
--- KEYS[1] user
--- KEYS[2] users
--- KEYS[3] audit
--- KEYS[4] changed
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] email
--- ARGV[3] email_verified: '1' or '0'
--- ARGV[4] name
--- ARGV[5] password: the raw hash
--- ARGV[6] event: signed_up or created_by_operator
--- ARGV[7] address
--- ARGV[8] agent
--- ARGV[9] groups: one in each line, or empty
--- ARGV[10] external_id: the reserved id of an outside directory, or empty
--- ARGV[11] reason: why the new person is suspended, or empty
--- ARGV[12] note: about that, for operators
--- @reply exists
--- @reply ok
--- @include "now"
--- @include "audit"
--- @include "changed"

if redis.call('EXISTS', user) == 1 then return {'exists'} end
local now = now_ms()
note_new(changed, member)
-- The fields that every call reads come first, because a small hash is searched from its beginning.
redis.call('HSET', user, 'status', reason == '' and 'active' or 'disabled', 'epoch', '1', 'email', email, 'name', name, 'password', password,
  'created_at', int(now))
if email_verified == '1' then redis.call('HSET', user, 'verified', '1') end
if groups ~= '' then redis.call('HSET', user, 'groups', groups) end
if external_id ~= '' then redis.call('HSET', user, 'external_id', external_id) end
if reason ~= '' then redis.call('HSET', user, 'suspended_reason', reason, 'suspended_note', note) end
redis.call('SADD', users, member)
record(audit, event, '', address, agent)
if groups ~= '' then record(audit, 'groups_changed', '', '', '') end
if reason ~= '' then record(audit, 'suspended_by_operator', '', '', '') end
return {'ok'}
