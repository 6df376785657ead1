--- Sign out: the session ends at once.
--- KEYS[1] session
--- KEYS[2] sessions
--- KEYS[3] audit
--- ARGV[1] session_id
--- ARGV[2] address
--- ARGV[3] agent
--- @reply ok
--- @include "audit"
local session, sessions, audit = KEYS[1], KEYS[2], KEYS[3]
local session_id, address, agent = ARGV[1], ARGV[2], ARGV[3]

redis.call('ZREM', sessions, session_id)
if redis.call('DEL', session) == 1 then record(audit, 'signed_out', '', address, agent) end
return {'ok'}
