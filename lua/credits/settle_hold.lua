--- End a hold with the charge for the used tokens, never more than was held.
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] balance
--- KEYS[4] holds
--- KEYS[5] ledger
--- KEYS[6] idem: the record of the idempotency key
--- KEYS[7] reply: where the reply under that key is kept
--- KEYS[8] replies: the kept replies, by time
--- KEYS[9] lease: what the shard may spend of the app's daily limit
--- KEYS[10] used
--- KEYS[11] settled: the mark of this hold's settlement
--- KEYS[12] searches
--- ARGV[1] client
--- ARGV[2] hold: its id
--- ARGV[3] model
--- ARGV[4] input (number): tokens
--- ARGV[5] output (number): tokens
--- ARGV[6] cache_read (number): tokens of input that were read from a cache, not in `input`
--- ARGV[7] cache_write (number): tokens of input that were written to one; the same
--- ARGV[8] cache_write_1h (number): the same, for an hour; with 0 of all kinds no entry is made
--- ARGV[9] cost (number): micro-dollars of these tokens
--- ARGV[10] price_version
--- ARGV[11] keyed: '1' with an idempotency key
--- ARGV[12] sealed: the reply; '' if it is not kept
--- ARGV[13] name: of the reply among the kept ones
--- ARGV[14] reply_prefix: prefix of its key, up to that name
--- ARGV[15] keep (number): ms that the record is kept
--- ARGV[16] max_reply_bytes (number): of all kept replies of the person
--- ARGV[17] retention (number): ms that an entry stays in the ledger
--- ARGV[18] most (number): entries of the ledger
--- ARGV[19] leased: '1' if the hold is on the lease too
--- ARGV[20] usage_lasts (number): ms that rows of usage stay
--- ARGV[21] usage_most (number): rows of usage
--- ARGV[22] web_search (number): searches that the model's server made
--- ARGV[23] mails: '1' if mails reach people
--- ARGV[24] low (number): micro-dollars; a balance below it is low
--- ARGV[25] person_day (number): micro-dollars that the person may spend in a day; 0 without a limit
--- ARGV[26] prefix: prefix of the person's keys, up to the noun
--- @reply ended
--- @reply ok charged left notices to
--- @derives reply_prefix prefix
--- @idempotent
--- @durable
--- @reserve
--- @include "credits"
--- @include "spending"
--- @include "daily"
--- @include "usage"
--- @include "notices"
--- @include "budgets"
--- @include "replies"
--- @include "touch"

local now = now_ms()
-- An earlier release kept the mark among the holds.
local row = redis.call('GET', settled) or redis.call('HGET', holds, hold)
if not row or redis.call('EXISTS', user) == 0 then return {'ended'} end
local stands, amount, ends, _, counters = read_hold(row)
if ends <= now then return {'ended'} end
if not stands then
  touch(holds)
  return {'ok', amount, spendable_of(balance, holds, now), {}, {}}
end

local charged = math.min(amount, cost)
end_settled(holds, settled, hold, charged, ends, client)
if leased == '1' then end_on_lease(lease, hold, charged) end
local notices, to = {}, {}
if input + output + cache_read + cache_write + cache_write_1h + web_search > 0 then
  local fields = {'client', client, 'model', model, 'input', int(input), 'output', int(output),
    'price', price_version, 'hold', hold}
  local others = {cache_read = cache_read, cache_write = cache_write, cache_write_1h = cache_write_1h,
    web_search = web_search}
  for name, number in pairs(others) do
    if number > 0 then
      fields[#fields + 1] = name
      fields[#fields + 1] = int(number)
    end
  end
  if counters ~= '' then
    book_budgets(grant, prefix .. 'family:', counters, charged)
    fields[#fields + 1] = 'counts'
    fields[#fields + 1] = counters
  end
  if mails == '1' then notices, to = notices_of_charge(user, grant, balance, charged, person_day, low, now) end
  book_entry(ledger, balance, 'charge', -charged, fields, retention, most, now)
  book_spending(grant, charged, (month_of(now)))
  book_day(balance, charged, day_of(now))
  local counts = {1, charged, input, output, cache_read, cache_write, cache_write_1h}
  book_usage(used, searches, day_of(now), client, model, counts, web_search, usage_most, usage_lasts, now)
end
local left = spendable_of(balance, holds, now)
if keyed == '1' and redis.call('HGET', idem, 'hold') == hold then
  redis.call('HSET', idem, 'state', 'done', 'charged', int(charged), 'left', int(left))
  redis.call('PEXPIREAT', idem, int(now + keep))
  if sealed ~= '' then keep_reply(balance, replies, reply, reply_prefix, name, sealed, keep, max_reply_bytes, now) end
end
return {'ok', charged, left, notices, to}
