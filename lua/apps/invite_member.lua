--- Keep an invitation to the team of an app. It replaces an open one for the same address.
--- A row is `ends role inviter address`; `ends` is in ms. Drops rows that have ended.
--- KEYS[1] invitations
--- ARGV[1] id
--- ARGV[2] role
--- ARGV[3] by: the user id of the inviter
--- ARGV[4] email
--- ARGV[5] most (number): open invitations of one app
--- ARGV[6] lasts (number): ms
--- @reply full
--- @reply ok ends
--- @include "now"

local now, open = now_ms(), 0
local rows = redis.call('HGETALL', invitations)
for place = 1, #rows, 2 do
  local ends, address = string.match(rows[place + 1], '^(%d+) %S+ %S+ (.+)$')
  if not ends or tonumber(ends) <= now or address == email then
    redis.call('HDEL', invitations, rows[place])
  else
    open = open + 1
  end
end
if open >= most then return {'full'} end
redis.call('HSET', invitations, id, table.concat({int(now + lasts), role, by, email}, ' '))
redis.call('PEXPIRE', invitations, lasts)
return {'ok', int(now + lasts)}
