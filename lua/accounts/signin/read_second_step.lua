--- Read the data to check a second step, shortly after the right password.
--- KEYS[1] user
--- KEYS[2] factors
--- KEYS[3] passkeys
--- ARGV[1] session_epoch: read with the password
--- ARGV[2] at (number): of the password, ms
--- ARGV[3] lasts (number): ms
--- @reply over
--- @reply ok now secret credentials
--- @idempotent
--- @include "now"

local now = now_ms()
local row = redis.call('HMGET', user, 'status', 'epoch')
if row[1] ~= 'active' or row[2] ~= session_epoch or now - at > lasts then return {'over'} end
return {'ok', int(now), redis.call('HGET', factors, 'secret') or '', redis.call('HKEYS', passkeys)}
