--- @include "now"
-- A person's credits, in whole micro-dollars. `balance` (hash): paid, which is always opening plus the sum of the ledger;
-- opening and opening_at, for the folded entries; reply_bytes. `holds` (hash by id): 'amount ends client' of an open hold,
-- with its counters after a space if it counts for budgets.
-- `settled` (string for each settled hold, until the hold would have ended): 's<charged> ends client'; `holds` of an earlier
-- release has such marks too. `ledger` (stream): see `book_entry`. The held total is never stored: it is the sum of the
-- holds that have not ended, so a hold ends by itself. `reversed` of `balance` is what reversals of payments have taken; they
-- may leave less than is held, or less than nothing.

-- Prices are micro-dollars per million tokens. The result is rounded up once, at the end; exact below 2^53.
local function cost_of(input, output, input_price, output_price)
  local exact = input * input_price + output * output_price
  local part = math.fmod(exact, 1000000)
  return (exact - part) / 1000000 + (part > 0 and 1 or 0)
end

local function read_hold(row)
  local state, amount, ends, client, counters = string.match(row, '^(s?)(%d+) (%d+) (%S*) ?(.*)$')
  return state == '', tonumber(amount), tonumber(ends), client, counters
end

-- The total held, the total of one app, the number of open holds, and the total of the app's holds by counter. Drops ended
-- holds.
local function held_of(holds, client, now)
  local all, own, standing, by_counter = 0, 0, 0, {}
  local rows = redis.call('HGETALL', holds)
  for position = 1, #rows, 2 do
    local stands, amount, ends, holder, counters = read_hold(rows[position + 1])
    if ends <= now then
      redis.call('HDEL', holds, rows[position])
    elseif stands then
      all, standing = all + amount, standing + 1
      if holder == client then
        own = own + amount
        for counter in string.gmatch(counters, '%S+') do by_counter[counter] = (by_counter[counter] or 0) + amount end
      end
    end
  end
  return all, own, standing, by_counter
end

local function write_hold(holds, id, amount, ends, client, now, counters)
  local parts = {int(amount), int(ends), client, unpack(counters)}
  redis.call('HSET', holds, id, table.concat(parts, ' '))
  local left = redis.call('PTTL', holds)
  if left < 0 or now + left < ends then redis.call('PEXPIREAT', holds, int(ends)) end
end

-- Ends a hold with a charge. A mark stays until the hold would have ended, so that a repeated settlement finds it. Marks
-- have keys of their own, so their number costs later calls nothing.
local function end_settled(holds, settled, id, charged, ends, client)
  redis.call('HDEL', holds, id)
  redis.call('SET', settled, 's' .. int(charged) .. ' ' .. int(ends) .. ' ' .. client, 'PXAT', int(ends))
end

local function paid_of(balance)
  return tonumber(redis.call('HGET', balance, 'paid') or '0')
end

-- What is left to spend beyond the holds of calls in progress.
local function spendable_of(balance, holds, now)
  return math.max(0, paid_of(balance) - held_of(holds, '', now))
end

-- The amount of an entry is its fourth element: 'kind' kind 'amount' amount ...
local function amount_of(entry)
  return tonumber(entry[2][4])
end

-- Folds entries older than `retention` ms, and those beyond the newest `most`, into the opening balance; a hundred entries
-- at a call.
local function fold(ledger, balance, retention, most, now)
  local over = redis.call('XLEN', ledger) - most
  local sum, folded, last = 0, {}, nil
  local oldest = redis.call('XRANGE', ledger, '-', '+', 'COUNT', '1')[1]
  if not oldest then return end
  local function ripe(entry, position)
    return position <= over or tonumber(string.match(entry[1], '^%d+')) <= now - retention
  end
  if not ripe(oldest, 1) then return end
  for position, entry in ipairs(redis.call('XRANGE', ledger, '-', '+', 'COUNT', '100')) do
    if not ripe(entry, position) then break end
    sum = sum + amount_of(entry)
    folded[#folded + 1] = entry[1]
    last = entry[1]
  end
  redis.call('XDEL', ledger, unpack(folded))
  redis.call('HINCRBY', balance, 'opening', int(sum))
  redis.call('HSET', balance, 'opening_at', string.match(last, '^%d+'))
end

-- Appends an entry and updates the balance; `amount` is negative for a charge. Returns the balance.
local function book_entry(ledger, balance, kind, amount, fields, retention, most, now)
  local paid = redis.call('HINCRBY', balance, 'paid', int(amount))
  redis.call('XADD', ledger, '*', 'kind', kind, 'amount', int(amount), 'paid', int(paid), unpack(fields))
  fold(ledger, balance, retention, most, now)
  return paid
end
