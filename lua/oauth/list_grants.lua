--- List a page of a person's apps: connected ones first, then disconnected ones with data still kept. (SPEC 3.1)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] due
--- KEYS[4] outbox
--- KEYS[5] used
--- KEYS[6] holds
--- ARGV[1] grant_prefix: prefix of a grant's key, up to the client id
--- ARGV[2] usage_prefix: prefix of the app's usage key, up to the client id
--- ARGV[3] docs_prefix: prefix of the documents' key, up to the client id
--- ARGV[4] idle (number): ms
--- ARGV[5] shard: prefix of the shard's keys, up to 'app:'
--- ARGV[6] member: the person in the lists of the shard
--- ARGV[7] page (number): page number from 1; past the end, the last page
--- ARGV[8] size (number): places of a page; an app that may spend credits takes two, any other row one
--- ARGV[9] prefix: prefix of the person's keys, up to the noun
--- ARGV[10] windows: of an app's requests, 'group limit period' each
--- @reply signed_out
--- @reply ok email email_verified name picture preferences rows page pages
--- @derives grant_prefix usage_prefix docs_prefix shard prefix
--- @reserve
--- @include "connected"
--- @include "due"
--- @include "session"
--- @include "spending"
--- @include "budgets"
--- @include "doings"
--- @include "tree"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local found, revoked, rows, month = {}, {}, {}, month_of(now)
for _, client in ipairs(apps_of(user)) do
  local row = redis.call('HMGET', grant_prefix .. client, 'scope', 'connected_at', 'revoked_at')
  if not row[1] then
    drop_app(user, due, outbox, docs_prefix .. client, shard .. 'app:' .. client .. ':users', client, member)
  else
    local list = row[3] and revoked or found
    list[#list + 1] = {client, row[1], row[2], row[3] or ''}
  end
end
newest_first(found)
for _, row in ipairs(newest_first(revoked)) do found[#found + 1] = row end

local today, running = ai_calls_of(used, now), running_of(holds, now)
local begins, room = {}, 0
for position, row in ipairs(found) do
  local places = row[4] == '' and string.find(' ' .. row[2] .. ' ', ' credits:spend ', 1, true) and 2 or 1
  if room < places then begins[#begins + 1], room = position, size end
  room = room - places
end
local pages = math.max(1, #begins)
page = math.min(page, pages)
for position = begins[page] or 1, (begins[page + 1] or #found + 1) - 1 do
  local client, scope, connected, ended = unpack(found[position])
  local grant = grant_prefix .. client
  local row = redis.call('HMGET', grant, 'last_used_at', 'app_deleted', 'paused_at', 'epoch', 'delegated', 'issuer')
  local ends = ended ~= '' and redis.call('PTTL', grant) + now or 0
  local kept = redis.call('HMGET', usage_prefix .. client, 'documents', 'bytes')
  local ceiling, spent, _, budgets = spent_of(grant, month)
  rows[#rows + 1] = {client, scope, connected, row[1] or '', ended, ends, kept[1] or '0', kept[2] or '0',
    ceiling and int(ceiling) or '', int(spent), row[2] or '', row[3] or '', row[6] or '', budgets_told(budgets, 1, now),
    doings_of(prefix, client, row[1], today, running, windows, now),
    row[5] and ended == '' and tree_of(prefix, row[5], row[4], now) or {}}
end
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, rows, int(page), int(pages)}
