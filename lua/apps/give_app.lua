--- Add an app to the list of the person whom the operator makes its owner.
--- KEYS[1] user
--- KEYS[2] apps
--- KEYS[3] audit
--- ARGV[1] client
--- @reply not_found
--- @reply ok
--- @include "now"
--- @include "audit"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
redis.call('ZADD', apps, int(now_ms()), client)
record(audit, 'app_given_by_operator', client, '', '')
return {'ok'}
