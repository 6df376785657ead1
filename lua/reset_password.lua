--- Set a new password by a link that was mailed to the person: every session and every other link ends.
--- KEYS[1] user
--- KEYS[2] link
--- KEYS[3] audit
--- ARGV[1] link_id
--- ARGV[2] password: the raw hash
--- ARGV[3] address
--- ARGV[4] agent
--- @reply over
--- @reply ok
--- @include "link"
--- @include "audit"
local user, link, audit = KEYS[1], KEYS[2], KEYS[3]
local link_id, password, address, agent = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local found = live_link(user, link, link_id)
if not found or found.used then return {'over'} end
-- Whoever follows the link reads what is mailed to the address.
redis.call('HSET', user, 'password', password, 'verified', '1')
redis.call('HINCRBY', user, 'epoch', 1)
redis.call('HSET', link, 'used', '1')
record(audit, 'password_reset', '', address, agent)
return {'ok'}
