--- Sign out: the session ends at once.
--- KEYS[1] session
--- KEYS[2] sessions
--- KEYS[3] audit
--- KEYS[4] user
--- ARGV[1] session_id
--- ARGV[2] address
--- ARGV[3] agent
--- @reply ok
--- @durable
--- @reserve
--- @include "audit"
--- @include "touch"

redis.call('ZREM', sessions, session_id)
if redis.call('DEL', session) == 0 then
  touch(session)
elseif redis.call('EXISTS', user) == 1 then
  record(audit, 'signed_out', '', address, agent)
end
return {'ok'}
