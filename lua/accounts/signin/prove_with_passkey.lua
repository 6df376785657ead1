--- Note in a session that its person re-authenticated with a passkey. (WebAuthn 7.2)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] new_session: the session's key from now on; the same if its id stays
--- KEYS[4] sessions
--- KEYS[5] audit
--- KEYS[6] passkeys
--- KEYS[7] used
--- KEYS[8] window: of this session, where `try_passkey.lua` took a request
--- KEYS[9] windows: the same, of all of the person's sessions together
--- KEYS[10] confirmed: a window of the person's right answers
--- ARGV[1] credential: id, base64url
--- ARGV[2] count (number): the passkey's counter of signatures
--- ARGV[3] issued (number): of the challenge, ms
--- ARGV[4] lasts (number): ms
--- ARGV[5] session_id
--- ARGV[6] new_id
--- ARGV[7] idle (number): ms
--- ARGV[8] address
--- ARGV[9] agent
--- ARGV[10] limit (number): tries of this session per period
--- ARGV[11] all (number): tries of all sessions per period
--- ARGV[12] period (number): ms
--- ARGV[13] most (number): right answers per period
--- @reply signed_out
--- @reply unknown
--- @reply used
--- @reply regressed
--- @reply rate_limited reset retry
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"
--- @include "window"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local last = redis.call('HGET', passkeys, 'n:' .. credential)
if not last then return {'unknown'} end
if not take_challenge(used, issued, lasts, now) then return {'used'} end
if not count_on(passkeys, credential, last, count, now) then
  record(audit, 'passkey_copied', '', address, agent)
  return {'regressed'}
end
-- Only wrong answers count with wrong passwords; right ones have their own window.
give_back(window, limit, period, now)
give_back(windows, all, period, now)
local admitted, _, reset, retry = take_window(confirmed, most, period, now)
if not admitted then return {'rate_limited', reset, retry} end
redis.call('HSET', session, 'shown_at', int(now))
move_session(session, sessions, session_id, new_session, new_id)
record_apart(audit, 'confirmed', '', address, agent)
return {'ok'}
