--- Read a page of each stream of a shard of the trail, in one script, so no event arrives between the streams.
--- KEYS[1] strangers: the index of the days of a stream
--- KEYS[2] people: the same
--- KEYS[3] sensitive: the same
--- KEYS[4] operator: the same
--- ARGV[1] begin: an id for XRANGE or XREVRANGE
--- ARGV[2] last: the same
--- ARGV[3] most (number): events of each stream
--- ARGV[4] visits (number): days to look at
--- ARGV[5] backwards: 1 for the newest first
--- @reply ok pages day: the last day that was read, empty after the last of all
--- @idempotent
--- @include "trail"

local past = backwards == '1'
local wanted, final = day_of(begin), day_of(last)
local pages, read, full = {{}, {}, {}, {}}, '', false
for visit = 1, visits + 1 do
  local day
  for _, index in ipairs({strangers, people, sensitive, operator}) do
    local found = next_day(index, wanted, past)
    if found and (not day or (past and found > day) or (not past and found < day)) then day = found end
  end
  if not day or (past and day < final) or (not past and day > final) then
    read = ''
    break
  end
  if full or visit > visits then break end
  for place, index in ipairs({strangers, people, sensitive, operator}) do
    local page, found = pages[place], page_of(log_of(index, day), begin, last, most - #pages[place], past)
    for _, entry in ipairs(found) do page[#page + 1] = entry end
    if #page >= most then full = true end
  end
  read, wanted = int(day), past and day - 1 or day + 1
end
return {'ok', pages, read}
