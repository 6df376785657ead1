--- Is the person in one of these groups, one in each line? Everybody is if there are none.
local function in_groups(user, allowed)
  if allowed == '' then return true end
  local own = redis.call('HGET', user, 'groups') or ''
  for group in string.gmatch(allowed, '[^\n]+') do
    if string.find('\n' .. own .. '\n', '\n' .. group .. '\n', 1, true) then return true end
  end
  return false
end
