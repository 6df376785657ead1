--- Add up a part of a person's ledger, newest entries first, and find entries in it.
--- KEYS[1] balance
--- KEYS[2] ledger
--- ARGV[1] before: the id of an entry, exclusive, or '' for the newest end
--- ARGV[2] floor: the id of the oldest entry to read, or '-'
--- ARGV[3] most (number): entries to read
--- ARGV[4] since (number): ms; sums by day and found entries are not older
--- ARGV[5] ends (number): ms; nor as young as this
--- ARGV[6] app: of found entries, or '' for any
--- ARGV[7] kind: of found entries, or '' for any
--- ARGV[8] transaction: the id of a found entry, its payment or its hold, or '' for any
--- ARGV[9] room (number): entries to find; the next one ends the part
--- @reply ok paid opening length sum days found onward
--- @idempotent
--- @include "now"

local before_is = redis.call('HMGET', balance, 'paid', 'opening')
local from = before == '' and '+' or '(' .. before
local entries = redis.call('XREVRANGE', ledger, from, floor, 'COUNT', int(most))
local sum, days, found, onward, read = 0, {}, {}, '', 0
for _, entry in ipairs(entries) do
  local id, fields, row = entry[1], entry[2], {}
  for position = 1, #fields, 2 do row[fields[position]] = fields[position + 1] end
  local at, amount = tonumber(string.match(id, '^%d+')), tonumber(row.amount or '0')
  local within = at >= since and at < ends
  local fits = within and (app == '' or row.client == app) and (kind == '' or row.kind == kind)
    and (transaction == '' or id == transaction or row.payment == transaction or row.hold == transaction)
  if fits and room > 0 and #found == room then break end
  if fits and room > 0 then found[#found + 1] = {id, fields} end
  if within then
    local name = row.kind or ''
    if name == 'grant' and amount < 0 then name = 'taken' end
    if name == 'reversal' and amount > 0 then name = 'returned' end
    local day = int(math.floor(at / 86400000)) .. ' ' .. name
    days[day] = (days[day] or 0) + math.abs(amount)
  end
  sum, onward, read = sum + amount, id, read + 1
end
local flat = {}
for day, amount in pairs(days) do flat[#flat + 1] = {day, int(amount)} end
local more = read < #entries or #entries == most
return {'ok', before_is[1] or '0', before_is[2] or '0', redis.call('XLEN', ledger), int(sum), flat, found,
  more and onward or ''}
