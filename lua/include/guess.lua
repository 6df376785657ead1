--- @include "audit"
--- @include "window"
-- Takes one try at a code from the person's window; half of them are noted, and so are all. Returns as take_window.
local function take_guess(window, audit, limit, period, address, agent, now)
  local admitted, remaining, reset, retry = take_window(window, limit, period, now)
  if admitted and (remaining == 0 or remaining == math.floor(limit / 2)) then
    record(audit, 'codes_guessed', '', address, agent)
  end
  return admitted, reset, retry
end
