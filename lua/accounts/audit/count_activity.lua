--- Add to the figures of the present day: how often people signed in and the like, and who did.
--- KEYS[1] figures: the counts of a day lie behind a colon and the number of the day
--- KEYS[2] active: the same, of the people
--- ARGV[1] keep (number): ms after the day
--- ARGV[2] counts (json): an object of counts by name
--- ARGV[3] people (json): an array of user ids
--- @reply ok
--- @reserve
--- @include "now"

local day = math.floor(now_ms() / 86400000)
local expires = int((day + 1) * 86400000 + keep)
local row = figures .. ':' .. int(day)
local seen = active .. ':' .. int(day)
for name, count in pairs(counts) do redis.call('HINCRBY', row, name, int(count)) end
-- Distinct people, about: a few kilobytes, however many there are.
for _, user in ipairs(people) do redis.call('PFADD', seen, user) end
redis.call('PEXPIREAT', row, expires)
redis.call('PEXPIREAT', seen, expires)
return {'ok'}
