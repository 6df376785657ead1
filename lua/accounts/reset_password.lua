--- Set a new password with a mailed link; ends every session and every other link.
--- KEYS[1] user
--- KEYS[2] link
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- KEYS[7] due
--- KEYS[8] outbox
--- KEYS[9] guesses
--- KEYS[10] sessions
--- KEYS[11] identities
--- ARGV[1] link_id
--- ARGV[2] password: the raw hash
--- ARGV[3] prefix: prefix of the person's keys, up to the noun
--- ARGV[4] fresh_epoch
--- ARGV[5] grace (number): ms
--- ARGV[6] address
--- ARGV[7] agent
--- ARGV[8] member: the person in the lists of the shard
--- ARGV[9] lifts (number): ms in which one reset lifts a pause
--- ARGV[10] left_at (number): the most wrong codes that count afterwards
--- @reply over
--- @reply ok claimed left told unlinked
--- @derives prefix
--- @durable
--- @reserve
--- @include "link"
--- @include "audit"
--- @include "connected"
--- @include "grant"
--- @include "ended"

local found = live_link(user, link, link_id)
if not found or found.used then return {'over'} end
local left, unlinked, now = {}, {}, now_ms()
local claimed = redis.call('HGET', user, 'verified') ~= '1'
-- Nobody confirmed this address before: a stranger may have signed up with it, and may own the second step, the passkeys,
-- the identities at other servers and the connected apps.
if claimed then
  unlinked = redis.call('HKEYS', identities)
  redis.call('DEL', factors, passkeys, recovery, identities)
  for _, client in ipairs(apps_of(user)) do
    local grant = prefix .. 'grant:' .. client
    local kept = {}
    local row = redis.call('HMGET', grant, 'epoch', 'revoked_at')
    if row[1] and not row[2] then
      for _, noun in ipairs({'docs', 'meta', 'index', 'usage'}) do kept[#kept + 1] = prefix .. noun .. ':' .. client end
      end_grant(user, grant, kept, due, outbox, client, member, 'address_claimed', fresh_epoch, grace, now)
      left[#left + 1] = client
    end
  end
  record(audit, 'address_claimed', '', address, agent)
end
-- Following the link proves access to the address's mail.
redis.call('HSET', user, 'password', password, 'verified', '1')
local row = redis.call('HMGET', guesses, 'count', 'until', 'lifted')
redis.call('DEL', guesses)
-- So a thief with the mailbox does not get a hundred guesses at the second step with each reset.
if redis.call('EXISTS', factors) == 1 then
  redis.call('HSET', guesses, 'shared', '1')
  if row[3] and now - tonumber(row[3]) < lifts then
    redis.call('HSET', guesses, 'count', row[1] or '0', 'until', row[2] or '0', 'lifted', row[3])
  elseif row[1] then
    redis.call('HSET', guesses, 'count', int(math.min(tonumber(row[1]), left_at)), 'lifted', int(now))
  end
end
local told = tell_of_ends(user, sessions, prefix .. 'session:', '', outbox, member, now)
redis.call('HINCRBY', user, 'epoch', 1)
redis.call('HSET', link, 'used', '1')
record(audit, 'password_reset', '', address, agent)
return {'ok', claimed and 1 or 0, left, told, unlinked}
