--- Append to a person's audit trail what the operator did.
--- KEYS[1] user
--- KEYS[2] audit
--- ARGV[1] event
--- @reply not_found
--- @reply ok
--- @include "audit"
local user, audit = KEYS[1], KEYS[2]
local event = ARGV[1]

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
record(audit, event, '', '', '')
return {'ok'}
