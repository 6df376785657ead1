--- List the apps a person has registered, and those whose teams they joined, oldest first.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] apps
--- KEYS[4] teams
--- ARGV[1] idle (number): ms
--- @reply signed_out
--- @reply ok email email_verified name picture preferences now rows joined
--- @idempotent
--- @include "session"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, int(now), redis.call('ZRANGE', apps, 0, -1, 'WITHSCORES'),
  redis.call('ZRANGE', teams, 0, -1, 'WITHSCORES')}
