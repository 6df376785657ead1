--- Confirm the e-mail address of a signed-in person with a link that was mailed to it.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] link
--- KEYS[4] audit
--- ARGV[1] link_id
--- ARGV[2] email: the address the link was mailed to
--- ARGV[3] idle (number): ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply over
--- @reply already
--- @reply ok target
--- @reserve
--- @include "session"
--- @include "link"
--- @include "audit"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local row = redis.call('HMGET', user, 'email', 'verified')
if row[1] ~= email then return {'over'} end
if row[2] == '1' then return {'already'} end
local found = live_link(user, link, link_id)
if not found or found.used then return {'over'} end
redis.call('HSET', user, 'verified', '1')
redis.call('HSET', link, 'used', '1')
record(audit, 'email_confirmed', '', address, agent)
return {'ok', found.target}
