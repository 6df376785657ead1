--- End a delegated token of an app for the signed-in person; what came from it is dead without it. (RFC 8693)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] family: of the delegated token
--- KEYS[5] audit
--- ARGV[1] client
--- ARGV[2] family_id
--- ARGV[3] idle (number): ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "touch"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local given = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'delegated')
local line = redis.call('HMGET', family, 'epoch', 'up', 'revoked')
-- The list says that the token is of this app.
local listed = string.find(' ' .. (given[3] or ''), ' ' .. family_id .. ':', 1, true)
if not listed or given[2] or not line[2] or line[1] ~= given[1] then return {'not_found'} end
-- A repeated call changes nothing and is done.
if line[3] then
  touch(family)
  return {'ok'}
end
redis.call('HSET', family, 'revoked', 'revoked')
record(audit, 'delegation_ended', client, address, agent)
return {'ok'}
