--- Delete a person: the first write ends all access, and bounded steps remove the data.
--- KEYS[1] user
--- KEYS[2] users
--- KEYS[3] leaving: the rest of the row: the connected apps, and until they are released the address and the external id
--- KEYS[4] sessions
--- KEYS[5] audit
--- KEYS[6] balance
--- KEYS[7] holds
--- KEYS[8] ledger
--- KEYS[9] replies
--- KEYS[10] apps: registered by the person; whoever calls this hands them on, and removes the list
--- KEYS[11] factors
--- KEYS[12] passkeys
--- KEYS[13] recovery
--- KEYS[14] picture
--- KEYS[15] due
--- KEYS[16] outbox
--- KEYS[17] activity
--- KEYS[18] guesses
--- KEYS[19] undos
--- KEYS[20] used
--- KEYS[21] teams: apps of others; whoever calls this takes the person out of their teams, and removes the list
--- KEYS[22] payments
--- KEYS[23] searches
--- KEYS[24] identities
--- KEYS[25] changed
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] prefix: prefix of the person's keys, up to the noun
--- ARGV[3] shard: prefix of the shard's keys, up to 'app:'
--- ARGV[4] steps (number): apps, sessions and kept replies freed by one call
--- @reply more left
--- @reply done left email held identities_held external_id
--- @derives prefix shard
--- @idempotent
--- @durable
--- @reserve
--- @include "connected"
--- @include "step"
--- @include "touch"
--- @include "due"
--- @include "undo"
--- @include "ended"
--- @include "changed"
--- @include "audit"

if redis.call('EXISTS', user) == 1 then note_change(user, changed, member) end
redis.call('HDEL', user, 'status')
if redis.call('EXISTS', user) == 1 then
  tell_of_ends(user, sessions, prefix .. 'session:', '', outbox, member, now_ms())
  redis.call('RENAME', user, leaving)
end
-- The names of identities at other servers stay until their entries in the index are released.
for _, name in ipairs(redis.call('HKEYS', identities)) do redis.call('HSET', leaving, 'id:' .. name, '1') end
redis.call('DEL', identities)
-- The address can change until the row is gone, so only now is the address to release known.
for _, field in ipairs(redis.call('HKEYS', leaving)) do
  local stays = field == 'email' or field == 'external_id' or string.find(field, '^app:') or string.find(field, '^id:')
  if not stays then redis.call('HDEL', leaving, field) end
end
redis.call('DEL', factors, passkeys, recovery)
local freed, left = 0, {}
for position, client in ipairs(apps_of(leaving)) do
  freed = freed + tonumber(redis.call('HGET', prefix .. 'usage:' .. client, 'bytes') or '0')
  local row = redis.call('HMGET', prefix .. 'grant:' .. client, 'epoch', 'revoked_at')
  if row[1] and not row[2] then left[#left + 1] = client end
  -- An app in its grace window also gets the event: its data goes now.
  if row[1] then announce(leaving, outbox, 'user.deleted', client, member, '', now_ms()) end
  take_off_due(leaving, due, outbox, prefix .. 'docs:' .. client, client, member)
  for _, noun in ipairs({'grant', 'docs', 'meta', 'index', 'usage'}) do
    redis.call('UNLINK', prefix .. noun .. ':' .. client)
  end
  redis.call('SREM', shard .. 'app:' .. client .. ':users', member)
  redis.call('HDEL', leaving, app_field(client))
  if position == steps or freed > STEP_BYTES then break end
end
for _, session in ipairs(redis.call('ZRANGE', sessions, 0, steps - 1)) do
  redis.call('DEL', prefix .. 'session:' .. session)
  redis.call('ZREM', sessions, session)
end
for _, kept in ipairs(redis.call('ZRANGE', replies, 0, steps - 1)) do
  redis.call('UNLINK', prefix .. 'reply:' .. string.match(kept, '^%d+ (.*)$'))
  redis.call('ZREM', replies, kept)
end
if redis.call('EXISTS', sessions, replies, apps, teams) > 0 or #apps_of(leaving) > 0 then return {'more', left} end
for _, purpose in ipairs({'confirm', 'reset', 'change'}) do redis.call('UNLINK', prefix .. 'link:' .. purpose) end
-- Old addresses that a link could bring back are free again; entries that are not released now expire.
local held = {}
for _, entry in pairs(open_undos(undos, now_ms())) do held[#held + 1] = entry.email end
redis.call('UNLINK', audit, activity, guesses, balance, holds, ledger, used, searches, payments, picture, undos)
-- The list of the shard goes last, because an interrupted deletion is found there.
redis.call('SREM', users, member)
touch(leaving)
record_apart(audit, 'account_deleted', '', '', '')
local known = {}
for _, field in ipairs(redis.call('HKEYS', leaving)) do known[#known + 1] = string.match(field, '^id:(.+)$') end
local row = redis.call('HMGET', leaving, 'email', 'external_id')
return {'done', left, row[1] or '', held, known, row[2] or ''}
