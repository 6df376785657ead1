--- Append an event to a person's audit trail for the operator, or for the server when it takes an account back.
--- KEYS[1] user
--- KEYS[2] audit
--- ARGV[1] event
--- ARGV[2] client: or empty
--- @reply not_found
--- @reply ok
--- @reserve
--- @include "audit"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
record(audit, event, client, '', '')
return {'ok'}
