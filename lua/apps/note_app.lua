--- Note a change of a person's own app in their trail before the change; the session must be live.
--- With `proof`, the person must have re-authenticated; one re-authentication allows several changes.
--- With `limit`, the change takes a place in the window of all changes, or is refused.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] window
--- ARGV[1] event
--- ARGV[2] client
--- ARGV[3] idle (number): ms
--- ARGV[4] proof (number): ms that a re-authentication is valid, or empty if not needed
--- ARGV[5] limit (number): changes per period, or empty for a change that takes no place
--- ARGV[6] period (number): ms
--- ARGV[7] address
--- ARGV[8] agent
--- @reply signed_out
--- @reply unproved
--- @reply rate_limited reset retry
--- @reply ok
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"
--- @include "window"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if proof and not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if limit then
  local admitted, _, reset, retry = take_window(window, limit, period, now)
  if not admitted then return {'rate_limited', reset, retry} end
end
record(audit, event, client, address, agent)
return {'ok'}
