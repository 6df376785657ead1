--- Add an app to one of the lists of a person who is about to become its first owner, or another member of its team.
--- KEYS[1] user
--- KEYS[2] list
--- ARGV[1] client
--- @reply not_found
--- @reply ok
--- @idempotent
--- @reserve
--- @include "now"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
redis.call('ZADD', list, 'NX', int(now_ms()), client)
return {'ok'}
