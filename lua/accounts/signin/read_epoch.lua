--- Read a person's session epoch and the time, for the cookie of a known device.
--- KEYS[1] user
--- @reply not_found
--- @reply ok session_epoch now
--- @idempotent
--- @include "now"

local epoch = redis.call('HGET', user, 'epoch')
if not epoch then return {'not_found'} end
return {'ok', epoch, int(now_ms())}
