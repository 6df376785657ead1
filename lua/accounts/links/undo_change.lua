--- Take an account back with a link that was mailed after a change of address or a first second step.
--- Restores the old address, whose entry in the index is already the person's.
--- Ends every session, the password, the links of later changes, ways to sign in that were added since, what apps were
--- allowed since, and every token.
--- KEYS[1] user
--- KEYS[2] undos
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- KEYS[7] window: of links that set a password; somebody may have filled it
--- KEYS[8] due
--- KEYS[9] outbox
--- KEYS[10] sessions
--- KEYS[11] identities
--- KEYS[12] changed
--- ARGV[1] undo_id
--- ARGV[2] password: the raw hash of a password that nobody knows
--- ARGV[3] doubt (number): ms before the link was mailed; ways to sign in added since then go too
--- ARGV[4] address
--- ARGV[5] agent
--- ARGV[6] first_factor: '1' for a link mailed after a first second step, '2' after a linked identity
--- ARGV[7] prefix: prefix of the person's keys, up to the noun
--- ARGV[8] member: the person in the lists of the shard
--- ARGV[9] fresh_epoch
--- ARGV[10] grace (number): ms
--- @reply over
--- @reply already email
--- @reply ok email freed warned left lowered unlinked paused
--- @derives prefix
--- @durable
--- @reserve
--- @include "undo"
--- @include "audit"
--- @include "touch"
--- @include "connected"
--- @include "grant"
--- @include "allowance"
--- @include "pauses"
--- @include "ended"
--- @include "identity"
--- @include "changed"

local now = now_ms()
local row = redis.call('HMGET', user, 'status', 'email')
local entries = open_undos(undos, now)
local entry = entries[undo_id]
if row[1] ~= 'active' or not entry then return {'over'} end
if entry.used then
  if row[2] ~= entry.email then return {'over'} end
  touch(undos)
  return {'already', row[2]}
end

-- The owner of a later address must not take the account back.
local left = {row[2]}
for id, other in pairs(entries) do
  if other.at > entry.at then
    left[#left + 1] = other.email
    entries[id] = nil
    redis.call('HDEL', undos, id)
  end
end
redis.call('HSET', undos, undo_id, int(entry.ends) .. ' ' .. int(entry.at) .. ' 1 ' .. entry.email)
entry.used = true

-- An earlier link may still bring one of these addresses back.
local freed = {}
for _, email in ipairs(left) do
  if email ~= entry.email then
    freed[#freed + 1] = email
    freed[#freed + 1] = int(kept_until(entries, email))
  end
end

local since = entry.at - doubt
local app_since = redis.call('HGET', factors, 'since')
if app_since and tonumber(app_since) >= since then redis.call('DEL', factors) end
for _, field in ipairs(redis.call('HKEYS', passkeys)) do
  if string.sub(field, 1, 2) == 'c:' and tonumber(redis.call('HGET', passkeys, field)) >= since then
    local credential = string.sub(field, 3)
    redis.call('HDEL', passkeys, 'k:' .. credential, 'n:' .. credential, 'c:' .. credential)
  end
end
if redis.call('EXISTS', factors, passkeys) == 0 then redis.call('DEL', recovery) end
local unlinked = {}
for _, name in ipairs(redis.call('HKEYS', identities)) do
  local _, linked = read_identity(redis.call('HGET', identities, name))
  if tonumber(linked) >= since then
    redis.call('HDEL', identities, name)
    unlinked[#unlinked + 1] = name
  end
end

-- The thief may have allowed apps something since, and may have tokens of any app by signing in there.
local ended, lowered, paused = {}, {}, {}
for _, client in ipairs(apps_of(user)) do
  local grant = prefix .. 'grant:' .. client
  local given = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'connected_at', 'grown_at')
  if given[1] and not given[2] then
    if math.max(tonumber(given[3]), tonumber(given[4] or '0')) >= entry.at then
      local kept = {}
      for _, noun in ipairs({'docs', 'meta', 'index', 'usage'}) do kept[#kept + 1] = prefix .. noun .. ':' .. client end
      end_grant(user, grant, kept, due, outbox, client, member, 'taken_back', fresh_epoch, grace, now)
      -- When connected again, the app starts with the page's proposal, not with the thief's limit.
      redis.call('HDEL', grant, 'spend_limit')
      record(audit, 'app_disconnected', client, address, agent)
      ended[#ended + 1] = client
    else
      kill_pair(grant, fresh_epoch)
      announce(user, outbox, 'tokens.revoked', client, member, 'taken_back', now)
      if lower_again(grant, entry.at) then
        record(audit, 'spend_limit_set', client, address, agent)
        lowered[#lowered + 1] = client
      end
      if pause_again(grant, entry.at) then
        record(audit, 'app_paused', client, address, agent)
        paused[#paused + 1] = client
      end
    end
  end
end

note_change(user, changed, member)
redis.call('HSET', user, 'email', entry.email, 'verified', '1', 'password', password)
tell_of_ends(user, sessions, prefix .. 'session:', '', outbox, member, now)
redis.call('HINCRBY', user, 'epoch', 1)
redis.call('DEL', window)
if first_factor == '1' then record(audit, 'second_step_undone', '', address, agent) end
if first_factor == '2' then record(audit, 'identity_undone', '', address, agent) end
if row[2] ~= entry.email or first_factor == '0' then record(audit, 'email_change_undone', '', address, agent) end
return {'ok', row[2], freed, warned_of(user, undos, now), ended, lowered, unlinked, paused}
