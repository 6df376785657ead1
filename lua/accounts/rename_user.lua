--- Change the name of the signed-in person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] activity
--- KEYS[4] window: of renames
--- KEYS[5] changed
--- ARGV[1] name
--- ARGV[2] idle (number): ms
--- ARGV[3] limit (number)
--- ARGV[4] period (number): ms
--- ARGV[5] address
--- ARGV[6] agent
--- ARGV[7] member: the person in the lists of the shard
--- @reply signed_out
--- @reply rate_limited reset retry
--- @reply ok
--- @include "session"
--- @include "audit"
--- @include "window"
--- @include "changed"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if redis.call('HGET', user, 'name') == name then return {'ok'} end
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
note_change(user, changed, member)
redis.call('HSET', user, 'name', name)
record(activity, 'name_changed', '', address, agent)
return {'ok'}
