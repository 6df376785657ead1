-- Did this browser sign the person in before, within `lasts` ms, and since then neither changed the password nor signed
-- out everywhere? `session_epoch` and `known_at` are what its sealed cookie says.
local function is_known(epoch, session_epoch, known_at, lasts, now)
  return epoch == session_epoch and known_at ~= '' and now - tonumber(known_at) <= lasts
end
