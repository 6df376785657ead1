-- Whether a row is a delivery. Anything else at its key must not block other deliveries.
local function is_delivery(row)
  return redis.call('TYPE', row).ok == 'hash'
end
