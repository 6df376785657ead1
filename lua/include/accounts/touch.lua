-- Writes and leaves everything as it was. `row` is a hash, or the key of none.
-- An answer that something was done before, maybe over another connection, counts for as much as one that does it. WAIT
-- waits for what its own connection has written, so there has to be something.
local function touch(row)
  redis.call('HSET', row, '?', '')
  redis.call('HDEL', row, '?')
end
