-- Milliseconds since the epoch by the store's own clock, the only clock there is.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- tostring() keeps 14 digits only; every number that is stored goes through here. Adding zero makes 0 of -0, which
-- Redis takes for no integer.
local function int(number)
  return string.format('%.0f', number + 0)
end
