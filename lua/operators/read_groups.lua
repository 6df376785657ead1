--- Read some people of a shard who are in groups.
--- KEYS[1] users
--- ARGV[1] cursor: of SSCAN
--- ARGV[2] most (number): about how many people in one call
--- ARGV[3] people: prefix of a person's keys, up to the member of the list
--- ARGV[4] group: the name of the one group that is meant; empty for all
--- @reply ok cursor found
--- @derives people
--- @idempotent

local scanned = redis.call('SSCAN', users, cursor, 'COUNT', most)
local found = {}
for _, member in ipairs(scanned[2]) do
  local row = people .. member .. ':user'
  local groups = redis.call('HGET', row, 'groups')
  if groups and (group == '' or string.find('\n' .. groups .. '\n', '\n' .. group .. '\n', 1, true)) then
    found[#found + 1] = {member, groups, redis.call('HGET', row, 'email') or ''}
  end
end
return {'ok', scanned[1], found}
