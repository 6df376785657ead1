--- List the apps a person has connected, and those disconnected whose data is still kept. (SPEC 3.1)
--- KEYS[1] user
--- KEYS[2] session
--- ARGV[1] grant_prefix: what stands before the client id in the key of a grant
--- ARGV[2] usage_prefix: what stands before it in the key of what the app keeps
--- ARGV[3] idle: ms
--- ARGV[4] shard: what stands before 'app:' in the keys of the shard
--- ARGV[5] member: the person, as the lists of the shard have them
--- @reply signed_out
--- @reply ok email email_verified name picture rows
--- @derives grant_prefix usage_prefix shard
--- @include "connected"
--- @include "session"
--- @include "spending"
local user, session = KEYS[1], KEYS[2]
local grant_prefix, usage_prefix, idle, shard, member = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local rows, month = {}, month_of(now)
for _, client in ipairs(apps_of(user)) do
  local grant = grant_prefix .. client
  local row = redis.call('HMGET', grant, 'scope', 'connected_at', 'last_used_at', 'revoked_at')
  if row[1] then
    local ends = row[4] and redis.call('PTTL', grant) + now or 0
    local usage = usage_prefix .. client
    local kept = redis.call('HMGET', usage, 'documents', 'bytes')
    local ceiling, spent = spent_of(grant, month)
    rows[#rows + 1] = {client, row[1], row[2], row[3] or '', row[4] or '', ends, kept[1] or '0', kept[2] or '0',
      ceiling and int(ceiling) or '', int(spent)}
  else
    redis.call('HDEL', user, app_field(client))
    redis.call('SREM', shard .. 'app:' .. client .. ':users', member)
  end
end
local email, verified, name, picture = profile(user)
return {'ok', email, verified, name, picture, newest_first(rows)}
