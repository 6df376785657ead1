--- Replace the groups of a person, unless they changed meanwhile.
--- KEYS[1] user
--- KEYS[2] audit
--- ARGV[1] expected: the groups that were read, one in each line
--- ARGV[2] groups: the new ones, in this form
--- @reply not_found
--- @reply changed groups
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
--- @include "audit"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local present = redis.call('HGET', user, 'groups') or ''
if present ~= expected then return {'changed', present} end
if groups == '' then redis.call('HDEL', user, 'groups') else redis.call('HSET', user, 'groups', groups) end
record(audit, 'groups_changed', '', '', '')
return {'ok'}
