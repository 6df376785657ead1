--- Read the person of a browser session.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] undos
--- KEYS[4] passkeys
--- ARGV[1] idle (number): ms
--- @reply signed_out
--- @reply ok email email_verified name picture preferences warned passkey_offer
--- @idempotent
--- @include "session"
--- @include "undo"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local email, verified, name, picture, preferences = profile(user)
-- '1' if the person has no passkey, and has not hidden the offer of one.
local offered = redis.call('HEXISTS', user, 'passkey_offer') + redis.call('EXISTS', passkeys) == 0
return {'ok', email, verified, name, picture, preferences, warned_of(user, undos, now), offered and '1' or ''}
