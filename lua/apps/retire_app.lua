--- End the grants of a deleted app in one shard, in bounded steps; its documents enter the grace window. (SPEC 3.1)
--- KEYS[1] app_users
--- KEYS[2] due
--- KEYS[3] outbox
--- ARGV[1] client
--- ARGV[2] people: prefix of a person's keys, up to the member of the list
--- ARGV[3] cursor: of the list, 0 to begin with
--- ARGV[4] steps: about how many people one call reads
--- ARGV[5] fresh_epoch
--- ARGV[6] grace (number): ms
--- ARGV[7] lasts (number): ms until the list of the shard ends
--- ARGV[8] event: for the activity of each person
--- @reply ok cursor
--- @derives people
--- @idempotent
--- @durable
--- @reserve
--- @include "connected"
--- @include "grant"
--- @include "audit"

local now = now_ms()
local found = redis.call('SSCAN', app_users, cursor, 'COUNT', steps)
for _, member in ipairs(found[2]) do
  local prefix = people .. member .. ':'
  local grant = prefix .. 'grant:' .. client
  local kept = {}
  for _, noun in ipairs({'docs', 'meta', 'index', 'usage'}) do kept[#kept + 1] = prefix .. noun .. ':' .. client end
  local row = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'app_deleted')
  if not row[1] then
    drop_app(prefix .. 'user', due, outbox, kept[1], app_users, client, member)
  elseif not row[3] then
    -- A person who disconnected the app earlier keeps the end that was promised then.
    if not row[2] then
      end_grant(prefix .. 'user', grant, kept, due, outbox, client, member, 'app_deleted', fresh_epoch, grace, now)
    end
    redis.call('HSET', grant, 'app_deleted', '1')
    record(prefix .. 'audit', event, client, '', '')
  end
end
if tonumber(found[1]) == 0 then redis.call('PEXPIREAT', app_users, int(now + lasts)) end
return {'ok', found[1]}
