--- Note in the trail of a person, whose session must be live, what is about to be done with an app of theirs.
--- Where `proof` is given, the person must have confirmed who they are; a confirmation is good for several changes.
--- Where `limit` is given, the change takes a place in the window of all changes, or is refused.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] window
--- ARGV[1] event
--- ARGV[2] client
--- ARGV[3] idle (number): ms
--- ARGV[4] proof (number): ms that a confirmation is good for, or empty where none is demanded
--- ARGV[5] limit (number): changes per period, or empty for one that takes no place
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
