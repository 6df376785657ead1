-- Milliseconds since the epoch by the store's own clock, the only clock in use.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- tostring() keeps only 14 digits, so every stored number goes through here. Adding zero turns -0 into 0, because Redis does
-- not accept -0 as an integer.
local function int(number)
  return string.format('%.0f', number + 0)
end
