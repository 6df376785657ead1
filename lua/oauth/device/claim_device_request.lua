--- Claim a device's authorization request for one decision.
--- KEYS[1] device
--- ARGV[1] id
--- ARGV[2] claim: a new id of this decision
--- ARGV[3] lasts (number): ms after which a claim without an answer no longer counts
--- @reply gone
--- @reply claimed
--- @reply ok
--- @include "now"

local row = redis.call('HMGET', device, 'id', 'answer', 'claimed_at')
if row[1] ~= id or row[2] then return {'gone'} end
local now = now_ms()
if row[3] and now < tonumber(row[3]) + lasts then return {'claimed'} end
redis.call('HSET', device, 'claim', claim, 'claimed_at', int(now))
return {'ok'}
