--- Give a person another e-mail address by a link that was mailed to it. Its entry in the index is theirs already.
--- A confirmed address from before can be brought back by a link of its own, which no later change ends.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] link
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] passkeys
--- KEYS[7] undos
--- ARGV[1] link_id
--- ARGV[2] email: the new address
--- ARGV[3] idle (number): ms
--- ARGV[4] undo_id: of the link that brings the old address back
--- ARGV[5] lasts (number): ms that it works
--- ARGV[6] most (number): such links of one person
--- ARGV[7] address
--- ARGV[8] agent
--- @reply signed_out
--- @reply over
--- @reply full
--- @reply already old ends warned
--- @reply ok old ends warned
--- @durable
--- @reserve
--- @include "session"
--- @include "link"
--- @include "factors"
--- @include "undo"
--- @include "audit"
--- @include "touch"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local found = live_link(user, link, link_id)
if not found then return {'over'} end
local entries = open_undos(undos, now)
if found.used then
  -- The answer was lost, or it was clicked twice: what is left to do is done again.
  if redis.call('HGET', user, 'email') ~= email then return {'over'} end
  touch(link)
  return {'already', found.email, int(kept_until(entries, found.email)), warned_of(user, undos, now)}
end
-- A link from before there was a second step was asked for without it.
if has_factor(factors, passkeys) and redis.call('HGET', link, 'shown') ~= '1' then return {'over'} end
-- Whoever reads the mail of an address that nobody confirmed may be a stranger.
if redis.call('HGET', user, 'verified') == '1' then
  local number = 0
  for _ in pairs(entries) do number = number + 1 end
  if number >= most then return {'full'} end
  add_undo(undos, entries, undo_id, found.email, lasts, now)
end
redis.call('HSET', user, 'email', email, 'verified', '1')
redis.call('HSET', link, 'used', '1')
record(audit, 'email_changed', '', address, agent)
return {'ok', found.email, int(kept_until(entries, found.email)), warned_of(user, undos, now)}
