--- Give a person another e-mail address by a link that was mailed to it. Its entry in the index is theirs already.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] link
--- KEYS[4] audit
--- ARGV[1] link_id
--- ARGV[2] email: the new address
--- ARGV[3] idle: ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply over
--- @reply already old
--- @reply ok old
--- @durable
--- @include "session"
--- @include "link"
--- @include "audit"
--- @include "touch"
local user, session, link, audit = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local link_id, email, idle, address, agent = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local found = live_link(user, link, link_id)
if not found then return {'over'} end
if found.used then
  -- The answer was lost, or it was clicked twice: what is left to do is done again.
  if redis.call('HGET', user, 'email') ~= email then return {'over'} end
  touch(link)
  return {'already', found.email}
end
redis.call('HSET', user, 'email', email, 'verified', '1')
redis.call('HSET', link, 'used', '1')
record(audit, 'email_changed', '', address, agent)
return {'ok', found.email}
