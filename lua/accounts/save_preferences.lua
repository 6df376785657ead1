--- Keep how the signed-in person wants pages and mails to read.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] activity
--- KEYS[4] window: of changes to the profile
--- ARGV[1] language: the code of a language, or empty
--- ARGV[2] zone: the name of a time zone, or empty
--- ARGV[3] idle (number): ms
--- ARGV[4] limit (number)
--- ARGV[5] period (number): ms
--- ARGV[6] address
--- ARGV[7] agent
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply ok
--- @include "session"
--- @include "audit"
--- @include "window"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local row = redis.call('HMGET', user, 'language', 'zone')
if (row[1] or '') == language and (row[2] or '') == zone then return {'ok'} end
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
for field, value in pairs({language = language, zone = zone}) do
  if value == '' then redis.call('HDEL', user, field) else redis.call('HSET', user, field, value) end
end
record(activity, 'preferences_changed', '', address, agent)
return {'ok'}
