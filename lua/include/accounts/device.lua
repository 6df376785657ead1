-- The first session epoch whose known browsers are known still. `devices` is `from to`: ending the other sessions moved the
-- epoch from `from` to `to` and ended no browser. Whatever else moves the epoch needs no word here: `to` is over then.
local function devices_since(epoch, devices)
  local from, to = string.match(devices or '', '^(%d+) (%d+)$')
  return to == epoch and from or epoch
end

-- Did this browser sign the person in before, within `lasts` ms, and did nothing end known browsers since then?
-- `session_epoch` and `known_at` are what its sealed cookie says.
local function is_known(epoch, devices, session_epoch, known_at, lasts, now)
  local then_epoch = tonumber(session_epoch)
  if not epoch or not then_epoch or known_at == '' or now - tonumber(known_at) > lasts then return false end
  return then_epoch >= tonumber(devices_since(epoch, devices)) and then_epoch <= tonumber(epoch)
end
