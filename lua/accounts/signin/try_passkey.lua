--- Take one request from the windows of what is typed in a live session, and read the passkey that answers there.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] passkeys
--- KEYS[4] window: of this session
--- KEYS[5] windows: of all of the person's sessions together
--- ARGV[1] credential: id, base64url
--- ARGV[2] limit: tries of this session per period
--- ARGV[3] all: tries of all sessions per period
--- ARGV[4] period: ms
--- ARGV[5] idle: ms
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply unknown
--- @reply ok facts
--- @reserve
--- @include "session"
--- @include "window"
local user, session, passkeys, window, windows = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local credential, limit, all, period = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local idle = tonumber(ARGV[5])

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
