--- Change a person's e-mail address for an operator; the entry of the index is theirs already. It counts as confirmed.
--- A link can bring back an old address that was confirmed, unless the operator says that its mailbox is lost.
--- KEYS[1] user
--- KEYS[2] undos
--- KEYS[3] audit
--- KEYS[4] changed
--- ARGV[1] email: the new address
--- ARGV[2] undo_id: of the link that can bring the old address back; empty for none
--- ARGV[3] lasts (number): ms that the link works
--- ARGV[4] most (number): such links of one person
--- ARGV[5] member: the person in the lists of the shard
--- ARGV[6] lost (number): ms during which the same change counts as a repeat after a lost answer
--- @reply not_found
--- @reply full
--- @reply same warned
--- @reply closed emails warned
--- @reply again id old ends warned
--- @reply ok old ends warned
--- @durable
--- @reserve
--- @include "now"
--- @include "undo"
--- @include "audit"
--- @include "touch"
--- @include "changed"

local row = redis.call('HMGET', user, 'status', 'email', 'verified')
if not row[1] then return {'not_found'} end
local now, old = now_ms(), row[2]
local entries = open_undos(undos, now)
if old == email then
  touch(user)
  -- Where the answer was lost, the caller repeats the remaining steps: nobody has mailed the link yet.
  local id, newest = newest_undo(entries, email)
  if undo_id ~= '' and newest and now - newest.at < lost then
    return {'again', id, newest.email, int(kept_until(entries, newest.email)), warned_of(user, undos, now)}
  end
  if undo_id == '' and id then
    -- A mailbox turned out to be lost after the change. Nobody says which, so no link brings an earlier address back.
    local closed = {}
    for one, entry in pairs(entries) do
      if not entry.used and entry.email ~= email then
        redis.call('HDEL', undos, one)
        closed[#closed + 1] = entry.email
      end
    end
    record(audit, 'email_links_ended_by_operator', '', '', '')
    return {'closed', closed, warned_of(user, undos, now)}
  end
  return {'same', warned_of(user, undos, now)}
end
if undo_id == '' then
  for id, entry in pairs(entries) do
    if entry.email == old then
      redis.call('HDEL', undos, id)
      entries[id] = nil
    end
  end
elseif row[3] == '1' then
  local number = 0
  for _ in pairs(entries) do number = number + 1 end
  if number >= most then return {'full'} end
  add_undo(undos, entries, undo_id, old, lasts, now)
end
note_change(user, changed, member)
redis.call('HSET', user, 'email', email, 'verified', '1')
record(audit, 'email_changed_by_operator', '', '', '')
return {'ok', old, int(kept_until(entries, old)), warned_of(user, undos, now)}
