--- Open a claimed device's authorization request again, because its decision was refused.
--- KEYS[1] device
--- ARGV[1] claim
--- @reply gone
--- @reply ok
--- @reserve

if redis.call('HGET', device, 'claim') ~= claim then return {'gone'} end
redis.call('HDEL', device, 'claim', 'claimed_at')
return {'ok'}
