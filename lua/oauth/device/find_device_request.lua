--- Read a device's authorization request that nobody has answered. (RFC 8628 3.3)
--- KEYS[1] device
--- ARGV[1] id: of the request, or empty for the one that has this code
--- @reply gone
--- @reply ok id params address agent age
--- @reserve
--- @include "now"

local row = redis.call('HMGET', device, 'id', 'params', 'address', 'agent', 'created_at', 'answer')
if not row[1] or row[6] or (id ~= '' and row[1] ~= id) then return {'gone'} end
return {'ok', row[1], row[2], row[3], row[4], int(now_ms() - tonumber(row[5]))}
