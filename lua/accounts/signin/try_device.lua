--- Take one request from the windows of a known device, and read the credentials to verify a password.
--- KEYS[1] user
--- KEYS[2] device: the window of this device
--- KEYS[3] devices: the window of all of the person's devices together
--- ARGV[1] email: as it was typed
--- ARGV[2] session_epoch: of the person, when the device last signed in
--- ARGV[3] known_at: ms
--- ARGV[4] lasts (number): ms
--- ARGV[5] limit (number): tries of this device per period
--- ARGV[6] all (number): tries of all devices per period
--- ARGV[7] period (number): ms
--- @reply stranger
--- @reply ok password status session_epoch
--- @reserve
--- @include "device"
--- @include "window"

local now = now_ms()
local row = redis.call('HMGET', user, 'email', 'password', 'status', 'epoch', 'devices')
-- On any mismatch the browser counts as a stranger's, and so do its tries.
if row[1] ~= email or not is_known(row[4], row[5], session_epoch, known_at, lasts, now) then
  return {'stranger'}
end
if not take_window(device, limit, period, now) then return {'stranger'} end
if not take_window(devices, all, period, now) then
  give_back(device, limit, period, now)
  return {'stranger'}
end
return {'ok', row[2], row[3], row[4]}
