--- Change a person's e-mail address with a link that was mailed to the new one, whose index entry is already theirs.
--- A link can bring back an old address that was confirmed; no later change ends that link.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] link
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] passkeys
--- KEYS[7] undos
--- KEYS[8] changed
--- ARGV[1] link_id
--- ARGV[2] email: the new address
--- ARGV[3] idle (number): ms
--- ARGV[4] undo_id: of the link that can bring the old address back
--- ARGV[5] lasts (number): ms that the link works
--- ARGV[6] most (number): such links of one person
--- ARGV[7] address
--- ARGV[8] agent
--- ARGV[9] member: the person in the lists of the shard
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
--- @include "changed"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local found = live_link(user, link, link_id)
if not found then return {'over'} end
local entries = open_undos(undos, now)
if found.used then
  -- The answer was lost, or the person clicked twice: the caller repeats the remaining steps.
  if redis.call('HGET', user, 'email') ~= email then return {'over'} end
  touch(link)
  return {'already', found.email, int(kept_until(entries, found.email)), warned_of(user, undos, now)}
end
-- A link older than the second step was issued without that step.
if has_factor(factors, passkeys) and redis.call('HGET', link, 'shown') ~= '1' then return {'over'} end
-- An address that nobody confirmed may belong to a stranger.
if redis.call('HGET', user, 'verified') == '1' then
  local number = 0
  for _ in pairs(entries) do number = number + 1 end
  if number >= most then return {'full'} end
  add_undo(undos, entries, undo_id, found.email, lasts, now)
end
note_change(user, changed, member)
redis.call('HSET', user, 'email', email, 'verified', '1')
redis.call('HSET', link, 'used', '1')
record(audit, 'email_changed', '', address, agent)
return {'ok', found.email, int(kept_until(entries, found.email)), warned_of(user, undos, now)}
