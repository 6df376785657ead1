--- Give back one request to the windows of an address and its networks.
--- KEYS[1] wide: the same key as the other two for a window without networks
--- KEYS[2] middle
--- KEYS[3] narrow
--- ARGV[1] limit (number): requests per period, of the narrow one
--- ARGV[2] middle_limit (number)
--- ARGV[3] wide_limit (number)
--- ARGV[4] period (number): ms
--- @reply ok
--- @reserve
--- @include "networks"

local now = now_ms()
for _, rung in ipairs(each_once(wide, middle, narrow, {limit, middle_limit, wide_limit})) do
  give_back(rung[1], rung[2], period, now)
end
return {'ok'}
