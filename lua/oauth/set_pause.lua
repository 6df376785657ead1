--- Pause a connected app, or resume it, for the signed-in person. While it is paused, no token of it is admitted.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] audit
--- ARGV[1] client
--- ARGV[2] pause: '1' to pause, empty to resume
--- ARGV[3] idle (number): ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "pauses"
--- @include "touch"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local given = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'paused_at')
if not given[1] or given[2] then return {'not_found'} end
-- A repeated call changes nothing and is done.
if (pause == '1') == (given[3] and true or false) then
  touch(grant)
  return {'ok'}
end
if pause == '1' then
  redis.call('HSET', grant, 'paused_at', int(now))
  record(audit, 'app_paused', client, address, agent)
else
  resume(grant, now)
  record(audit, 'app_resumed', client, address, agent)
end
return {'ok'}
