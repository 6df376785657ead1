--- Give a person a role of operators, another one, or none; an admin is left.
--- KEYS[1] holders: the roles of people, by user id
--- ARGV[1] member: the user id
--- ARGV[2] role: or empty
--- ARGV[3] by: who gives it, in the form of the audit trail
--- ARGV[4] most (number): people with a role
--- @reply last_admin
--- @reply full
--- @reply ok before
--- @durable
--- @reserve
--- @include "now"
--- @include "touch"

-- A row is `role since by`.
local function role_in(row) return string.match(row or '', '^%S+') or '' end

local before = role_in(redis.call('HGET', holders, member))
if before == 'admin' and role ~= 'admin' then
  local admins = 0
  for _, row in ipairs(redis.call('HVALS', holders)) do
    if role_in(row) == 'admin' then admins = admins + 1 end
  end
  if admins < 2 then return {'last_admin'} end
end
if before == '' and role ~= '' and redis.call('HLEN', holders) >= most then return {'full'} end
if role == before then
  touch(holders)
elseif role == '' then
  redis.call('HDEL', holders, member)
else
  redis.call('HSET', holders, member, role .. ' ' .. int(now_ms()) .. ' ' .. by)
end
return {'ok', before}
