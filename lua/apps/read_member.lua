--- Read a person whom others of an app's team see, and whom mails about the app go to.
--- KEYS[1] user
--- KEYS[2] undos
--- @reply not_found
--- @reply ok email email_verified name picture preferences warned status
--- @idempotent
--- @reserve
--- @include "undo"
--- @include "session"

local status = redis.call('HGET', user, 'status')
if not status then return {'not_found'} end
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, warned_of(user, undos, now_ms()), status}
