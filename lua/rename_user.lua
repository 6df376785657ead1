--- Change the name of the person who is signed in.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- ARGV[1] name
--- ARGV[2] idle: ms
--- ARGV[3] address
--- ARGV[4] agent
--- @reply signed_out
--- @reply ok
--- @include "session"
--- @include "audit"
local user, session, audit = KEYS[1], KEYS[2], KEYS[3]
local name, idle, address, agent = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
if redis.call('HGET', user, 'name') == name then return {'ok'} end
redis.call('HSET', user, 'name', name)
record(audit, 'name_changed', '', address, agent)
return {'ok'}
