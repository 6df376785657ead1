-- The first session epoch whose known devices are still known. `devices` is `from to`: ending the other sessions moved
-- the epoch from `from` to `to` and kept known devices. Any other change of the epoch makes `to` out of date by itself.
local function devices_since(epoch, devices)
  local from, to = string.match(devices or '', '^(%d+) (%d+)$')
  return to == epoch and from or epoch
end

-- Whether this browser signed the person in within the last `lasts` ms, and nothing ended known devices since.
-- `session_epoch` and `known_at` are from its sealed cookie.
local function is_known(epoch, devices, session_epoch, known_at, lasts, now)
  local then_epoch = tonumber(session_epoch)
  if not epoch or not then_epoch or known_at == '' or now - tonumber(known_at) > lasts then return false end
  return then_epoch >= tonumber(devices_since(epoch, devices)) and then_epoch <= tonumber(epoch)
end
