--- The person sets what a connected app may spend in a month, or takes the limit off.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] activity
--- ARGV[1] client
--- ARGV[2] spend_limit: micro-dollars a month, or 'none'
--- ARGV[3] idle: ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "scope"
--- @include "spending"
--- @include "audit"
local user, session, grant, activity = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local client, spend_limit, idle, address, agent = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local given = redis.call('HMGET', grant, 'scope', 'revoked_at')
if not given[1] or given[2] or not has_scope(given[1], 'credits:spend') then return {'not_found'} end
set_spend_limit(grant, spend_limit)
record(activity, 'spend_limit_set', client, address, agent)
return {'ok'}
