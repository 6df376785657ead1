-- Whether a row is one of a delivery. What else lies in its place holds up no other.
local function is_delivery(row)
  return redis.call('TYPE', row).ok == 'hash'
end
