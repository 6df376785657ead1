--- Take several requests at once from the window of a caller, for the calls that one process will admit by itself.
--- KEYS[1] window
--- ARGV[1] limit (number): requests per period
--- ARGV[2] period (number): ms
--- ARGV[3] wanted (number): how many at most
--- @reply ok remaining reset taken
--- @reply rate_limited reset retry
--- @reserve
--- @include "window"

local admitted, remaining, reset, retry, taken = take_window(window, limit, period, now_ms(), false, wanted)
if not admitted then return {'rate_limited', reset, retry} end
return {'ok', remaining, reset, taken}
