--- Take one request from a window outside the shards: of an address, a sign-in, an invented token. (SPEC 8.1)
--- KEYS[1] window
--- ARGV[1] limit (number): requests per period
--- ARGV[2] period (number): ms
--- @reply ok remaining reset
--- @reply rate_limited reset retry
--- @reserve
--- @include "window"

local admitted, remaining, reset, retry = take_window(window, limit, period, now_ms())
if not admitted then return {'rate_limited', reset, retry} end
return {'ok', remaining, reset}
