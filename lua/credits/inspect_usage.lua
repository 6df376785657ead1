--- Read all that a person's AI calls used, for the operator and the person's export.
--- KEYS[1] user
--- KEYS[2] used
--- KEYS[3] searches
--- ARGV[1] days (number): number of days, including today
--- @reply not_found
--- @reply ok first last rows
--- @idempotent
--- @include "usage"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
local first, last, rows = usage_of(used, searches, '', 0, 0, days, now_ms())
return {'ok', first, last, rows}
