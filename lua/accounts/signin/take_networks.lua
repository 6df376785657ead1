--- Take one request from the windows of an address and the networks around it: from all of them, or from none.
--- KEYS[1] wide
--- KEYS[2] middle
--- KEYS[3] narrow
--- ARGV[1] limit (number): requests per period, of the narrow one
--- ARGV[2] middle_limit (number)
--- ARGV[3] wide_limit (number)
--- ARGV[4] period (number): ms
--- @reply ok remaining reset
--- @reply rate_limited reset retry
--- @reserve
--- @include "networks"

local now, left, ends, taken = now_ms(), nil, nil, {}
for _, rung in ipairs(each_once(wide, middle, narrow, {limit, middle_limit, wide_limit})) do
  local admitted, remaining, reset, retry = take_window(rung[1], rung[2], period, now)
  if not admitted then
    -- A client that has filled one window takes nothing from its neighbours with further requests.
    for _, other in ipairs(taken) do give_back(other[1], other[2], period, now) end
    return {'rate_limited', reset, retry}
  end
  taken[#taken + 1] = rung
  if not left then left, ends = remaining, reset end
end
return {'ok', left, ends}
