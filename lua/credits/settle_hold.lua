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
--- @include "usage"

local now = now_ms()
-- An earlier release kept the mark among the holds.
local row = redis.call('GET', settled) or redis.call('HGET', holds, hold)
if not row or redis.call('EXISTS', user) == 0 then return {'ended'} end
local stands, amount, ends, _, counters = read_hold(row)
if ends <= now then return {'ended'} end
local before = redis.call('HMGET', balance, 'paid', 'spent_day', 'day_spent', 'oldest_at')
local paid = tonumber(before[1] or '0')
if not stands then
  --- @include "touch"
  touch(holds)
  return {'ok', amount, math.max(0, paid - held_now(holds, now)), {}, {}}
end

local charged = math.min(amount, cost)
redis.call('HDEL', holds, hold)
-- A mark stays until the hold would have ended, so that a repeated settlement finds it. Marks have keys of their own, so their
-- number costs later calls nothing.
redis.call('SET', settled, 's' .. int(charged) .. ' ' .. int(ends) .. ' ' .. client, 'PXAT', int(ends))
if leased == '1' then
  --- @include "daily"
  end_on_lease(lease, hold, charged)
end
local notices, to = {}, {}
if input + output + cache_read + cache_write + cache_write_1h + web_search > 0 then
  local fields = {'client', client, 'model', model, 'input', int(input), 'output', int(output),
    'price', price_version, 'hold', hold}
  if cache_read + cache_write + cache_write_1h + web_search > 0 then
    local others = {cache_read = cache_read, cache_write = cache_write, cache_write_1h = cache_write_1h,
      web_search = web_search}
    for name, number in pairs(others) do
      if number > 0 then
        fields[#fields + 1] = name
        fields[#fields + 1] = int(number)
      end
    end
  end
  if counters ~= '' then
    --- @include "budgets"
    book_budgets(grant, prefix .. 'family:', counters, charged)
    fields[#fields + 1] = 'counts'
    fields[#fields + 1] = counters
  end
  local given = redis.call('HMGET', grant, 'epoch', 'spend_limit', 'spend_month', 'spent')
  local limit, today = tonumber(given[2] or '0'), math.floor(now / 86400000)
  local spent, month = in_period(given[3], given[4], (month_of(now)))
  local day_spent, day = in_period(before[2], before[3], today)
  if mails == '1' and charged > 0 then
    local of_app = limit > 0 and crossed(limit, spent, spent + charged)
    local of_day = person_day > 0 and crossed(person_day, day_spent, day_spent + charged)
    local poor = low > 0 and paid >= low and paid - charged < low
    if of_app or of_day or poor then
      --- @include "notices"
      notices, to = notices_of_charge(user, grant, balance, of_app, limit, month, of_day, person_day, day, poor and low)
    end
  end
  paid = paid - charged
  redis.call('HSET', balance, 'paid', int(paid), 'spent_day', int(day), 'day_spent', int(day_spent + charged))
  append_entry(ledger, balance, 'charge', -charged, paid, fields, before[4], retention, most, now)
  -- A missing grant must not come back as a row without an epoch.
  if given[1] then redis.call('HSET', grant, 'spend_month', int(month), 'spent', int(spent + charged)) end
  book_usage(used, searches, today, client, model, charged, input, output, cache_read, cache_write, cache_write_1h,
    web_search, usage_most, usage_lasts, now)
end
local left = math.max(0, paid - held_now(holds, now))
if keyed == '1' and redis.call('HGET', idem, 'hold') == hold then
  redis.call('HSET', idem, 'state', 'done', 'charged', int(charged), 'left', int(left))
  redis.call('PEXPIREAT', idem, int(now + keep))
  if sealed ~= '' then
    --- @include "replies"
    keep_reply(balance, replies, reply, reply_prefix, name, sealed, keep, max_reply_bytes, now)
  end
end
return {'ok', charged, left, notices, to}
