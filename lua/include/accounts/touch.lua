-- Writes without a change. `row` is the key of a hash or of nothing.
-- An answer that something was done before, maybe on another connection, must be as durable as the first answer. WAIT
-- covers only what its own connection has written, so there must be a write.
local function touch(row)
  redis.call('HSET', row, '?', '')
  redis.call('HDEL', row, '?')
end
