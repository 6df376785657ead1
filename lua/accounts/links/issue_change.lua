--- Make a link to a new e-mail address for a signed-in person who re-authenticated.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] link
--- KEYS[4] window
--- KEYS[5] audit
--- KEYS[6] factors
--- KEYS[7] passkeys
--- ARGV[1] link_id
--- ARGV[2] email: the person's address, as read
--- ARGV[3] password: the raw hash that was verified, or empty
--- ARGV[4] ttl (number): ms
--- ARGV[5] mailed: '1' if a mail server sends the mail, '0' without one
--- ARGV[6] limit (number)
--- ARGV[7] period (number): ms
--- ARGV[8] idle (number): ms
--- ARGV[9] proof (number): ms
--- ARGV[10] address
--- ARGV[11] agent
--- @reply signed_out
--- @reply gone
--- @reply unproved
--- @reply stale
--- @reply rate_limited reset retry
--- @reply ok preferences
--- @reserve
--- @include "session"
--- @include "factors"
--- @include "identity"
--- @include "window"
--- @include "audit"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local row = redis.call('HMGET', user, 'email', 'epoch', 'password', 'language', 'zone')
if row[1] ~= email then return {'gone'} end
local second = has_factor(factors, passkeys)
if second or not has_password(user) then
  if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
elseif row[3] ~= password then
  return {'stale'}
end
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
redis.call('DEL', link)
redis.call('HSET', link, 'id', link_id, 'email', email, 'epoch', row[2], 'target', '', 'mailed', mailed)
if second then
  redis.call('HSET', link, 'shown', '1')
  spend_proof(session)
end
redis.call('PEXPIREAT', link, int(now + ttl))
record(audit, 'email_change_asked', '', address, agent)
return {'ok', in_one(row[4], row[5])}
