--- Read a person's live sessions, newest first; drops the rest of ended ones.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- ARGV[1] session_prefix: prefix of a session's key, up to the session id
--- ARGV[2] idle (number): ms
--- @reply signed_out
--- @reply ok rows
--- @derives session_prefix
--- @idempotent
--- @include "session"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local epoch, rows = redis.call('HGET', user, 'epoch'), {}
for _, id in ipairs(redis.call('ZREVRANGE', sessions, 0, 199)) do
  local row = redis.call('HMGET', session_prefix .. id, 'epoch', 'created_at', 'seen_at', 'address', 'agent')
  if row[1] == epoch then
    rows[#rows + 1] = {id, row[2], row[3], row[4], row[5]}
  else
    redis.call('ZREM', sessions, id)
  end
end
return {'ok', rows}
