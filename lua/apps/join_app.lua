--- Add an app to the list of a person who is about to join its team by an invitation, if there is room.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] teams
--- KEYS[4] audit
--- KEYS[5] window
--- ARGV[1] client
--- ARGV[2] email: the invited address, which must be the person's, and confirmed
--- ARGV[3] most (number): teams of one person
--- ARGV[4] idle (number): ms
--- ARGV[5] limit (number): changes per period
--- ARGV[6] period (number): ms
--- ARGV[7] address
--- ARGV[8] agent
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply elsewhere
--- @reply full
--- @reply ok
--- @include "session"
--- @include "audit"
--- @include "window"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local row = redis.call('HMGET', user, 'email', 'verified')
if row[1] ~= email or row[2] ~= '1' then return {'elsewhere'} end
local listed = redis.call('ZSCORE', teams, client)
if not listed and redis.call('ZCARD', teams) >= most then return {'full'} end
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
if not listed then redis.call('ZADD', teams, int(now), client) end
record(audit, 'app_joined', client, address, agent)
return {'ok'}
