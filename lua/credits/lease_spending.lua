--- Give a shard a slice of what an app may spend in a day, as long as there is one.
--- KEYS[1] spending: of the app, by day
--- ARGV[1] day (number): days since 1970, as the shard counts them
--- ARGV[2] limit (number): micro-dollars
--- ARGV[3] slice (number): micro-dollars
--- ARGV[4] missing (number): micro-dollars that the shard needs; a slice may be larger
--- ARGV[5] keep (number): ms
--- @reply used_up
--- @reply ok given
--- @durable
--- @include "now"

-- Day and sum of all slices. The later day continues, so that no day starts again.
local row = redis.call('HMGET', spending, 'day', 'leased')
local counted, leased = tonumber(row[1] or '0'), tonumber(row[2] or '0')
if day < counted then return {'used_up'} end
if day > counted then leased = 0 end
local given = math.min(math.max(slice, missing), limit - leased)
if given <= 0 then return {'used_up'} end
redis.call('HSET', spending, 'day', int(day), 'leased', int(leased + given))
redis.call('PEXPIREAT', spending, int(now_ms() + keep))
return {'ok', given}
