--- Sign out: the session ends at once.
--- KEYS[1] session
--- KEYS[2] sessions
--- KEYS[3] audit
--- KEYS[4] user
--- ARGV[1] session_id
--- ARGV[2] address
--- ARGV[3] agent
--- ARGV[4] client: the app that asked for it, or empty
--- ARGV[5] sid: the public id that the session must have, or empty for any session
--- @reply other
--- @reply ok
--- @durable
--- @reserve
--- @include "audit"
--- @include "touch"

if sid ~= '' and redis.call('HGET', session, 'sid') ~= sid then return {'other'} end
redis.call('ZREM', sessions, session_id)
if redis.call('DEL', session) == 0 then
  touch(session)
elseif redis.call('EXISTS', user) == 1 then
  record(audit, 'signed_out', client, address, agent)
end
return {'ok'}
