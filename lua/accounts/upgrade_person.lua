--- Upgrade a person's row, connected apps and audit trail from layout 1 to layout 2.
--- KEYS[1] user
--- KEYS[2] grants: of layout 1, the connected apps
--- KEYS[3] leaving
--- KEYS[4] audit
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
--- @include "connected"
--- @include "touch"

local row = redis.call('HMGET', user, 'session_epoch', 'email', 'email_verified', 'name', 'picture', 'password',
  'created_at')
if row[1] then
  -- The status stays, so the row never disappears, and the fields that every call reads stay first.
  redis.call('HDEL', user, 'session_epoch', 'email', 'email_verified', 'name', 'picture', 'password', 'created_at')
  -- Missing fields stay missing, for a check to report: an error here, after the HDEL, would lose the others.
  local after = {epoch = 1, email = 2, name = 4, password = 6, created_at = 7}
  for _, field in ipairs({'epoch', 'email', 'name', 'password', 'created_at'}) do
    if row[after[field]] then redis.call('HSET', user, field, row[after[field]]) end
  end
  if row[3] == '1' then redis.call('HSET', user, 'verified', '1') end
  if row[5] and row[5] ~= '' then redis.call('HSET', user, 'picture', row[5]) end
end
-- Without a row the person is being deleted, and the other row has the remaining work.
local present = redis.call('EXISTS', user) == 1
for _, client in ipairs(redis.call('ZRANGE', grants, 0, -1)) do
  if present then
    redis.call('HSETNX', user, app_field(client), '1')
  else
    redis.call('HSETNX', leaving, app_field(client), '1')
  end
end
redis.call('DEL', grants)
if redis.call('TYPE', audit)['ok'] == 'list' then
  local lines = redis.call('LRANGE', audit, 0, 199)
  for place, line in ipairs(lines) do lines[place] = string.gsub(line, '%c', ' ') end
  redis.call('SET', audit, table.concat(lines, '\n') .. '\n')
end
touch(leaving)
return {'ok'}
