--- Sign out: the session ends at once.
--- KEYS[1] session
--- KEYS[2] sessions
--- KEYS[3] audit
--- KEYS[4] user
--- KEYS[5] successor: the session that continues it in the same browser, or its own key
--- KEYS[6] outbox
--- ARGV[1] session_id
--- ARGV[2] address
--- ARGV[3] agent
--- ARGV[4] client: the app that asked for it, or empty
--- ARGV[5] sid: the public id that the session must have, or empty for any session
--- ARGV[6] member: the person in the lists of the shard
--- ARGV[7] session_prefix: prefix of a session's key, up to the session id
--- @reply other
--- @reply ok told
--- @derives session_prefix
--- @durable
--- @reserve
--- @include "audit"
--- @include "touch"
--- @include "ended"

if sid ~= '' and redis.call('HGET', session, 'sid') ~= sid then return {'other'} end
local told = 0
if successor == session or not continue_in(user, session, successor) then
  told = tell_of_end(user, session_prefix, session_id, outbox, member, now_ms())
end
redis.call('ZREM', sessions, session_id)
if redis.call('DEL', session) == 0 then
  touch(session)
elseif redis.call('EXISTS', user) == 1 then
  record(audit, 'signed_out', client, address, agent)
end
return {'ok', told}
