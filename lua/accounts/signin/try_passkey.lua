--- Take one request from the windows of passwords typed in a live session, and read the passkey that answers there.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] passkeys
--- KEYS[4] window: of this session
--- KEYS[5] windows: of all of the person's sessions together
--- ARGV[1] credential: id, base64url
--- ARGV[2] limit (number): tries of this session per period
--- ARGV[3] all (number): tries of all sessions per period
--- ARGV[4] period (number): ms
--- ARGV[5] idle (number): ms
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply unknown
--- @reply ok facts
--- @reserve
--- @include "session"
--- @include "window"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
admitted, _, reset, retry = take_window(windows, all, period, now)
if not admitted then
  give_back(window, limit, period, now)
  return {'rate_limited', reset, retry}
end
local facts = redis.call('HGET', passkeys, 'k:' .. credential)
if not facts then return {'unknown'} end
return {'ok', facts}
