--- Read what a person's connected apps do, for an open page that asks every second.
--- It does not extend the session: a page that is left open is no use of it.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] used
--- KEYS[4] holds
--- KEYS[5] ledger
--- ARGV[1] prefix: prefix of the person's keys, up to the noun
--- ARGV[2] windows: of an app's requests, 'group limit period' each
--- ARGV[3] known: the mark of an earlier answer, or empty
--- @reply signed_out
--- @reply ok preferences rows mark
--- @derives prefix
--- @idempotent
--- @include "connected"
--- @include "preferences"
--- @include "spending"
--- @include "budgets"
--- @include "doings"

local epoch = redis.call('HGET', session, 'epoch')
local person = redis.call('HMGET', user, 'status', 'epoch', 'language', 'zone')
if not epoch or person[1] ~= 'active' or person[2] ~= epoch then return {'signed_out'} end
local now = now_ms()
local rows, month = {}, month_of(now)
-- Each AI call has an entry. Without a new one, the asker knows the calls of today, and reads of them all can be spared.
local newest = redis.call('XREVRANGE', ledger, '+', '-', 'COUNT', '1')[1]
local mark = int(math.floor(now / 86400000)) .. ' ' .. (newest and newest[1] or '')
local today, running = mark ~= known and ai_calls_of(used, now) or {}, running_of(holds, now)
for _, client in ipairs(apps_of(user)) do
  local grant = prefix .. 'grant:' .. client
  local row = redis.call('HMGET', grant, 'scope', 'revoked_at', 'paused_at', 'last_used_at')
  if row[1] and not row[2] then
    local _, spent, _, budgets = spent_of(grant, month)
    rows[#rows + 1] = {client, row[3] or '', int(spent), budgets_told(budgets, 1, now),
      doings_of(prefix, client, row[4], today, running, windows, now)}
  end
end
return {'ok', in_one(person[3], person[4]), rows, mark}
