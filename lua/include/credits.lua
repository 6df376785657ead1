--- @include "now"
-- A person's credits, in whole micro-dollars. `balance` (hash): paid, which is always opening plus the sum of the ledger;
-- opening and opening_at, for the folded entries; oldest_at, a time (ms) before which no entry of the ledger was written;
-- reply_bytes. `holds` (hash by id): 'amount ends client' of an open hold, with its counters after a space if it counts for
-- budgets. `settled` (string for each settled hold, until the hold would have ended): 's<charged> ends client'; `holds` of an earlier
-- release has such marks too. `ledger` (stream): see `book_entry`. The held total is never stored: it is the sum of the
-- holds that have not ended, so a hold ends by itself. `reversed` of `balance` is what reversals of payments have taken; they
-- may leave less than is held, or less than nothing.

-- Prices are micro-dollars per million tokens. The result is rounded up once, at the end; exact below 2^53.
local function cost_of(input, output, input_price, output_price)
  local exact = input * input_price + output * output_price
  local part = math.fmod(exact, 1000000)
  return (exact - part) / 1000000 + (part > 0 and 1 or 0)
end

-- The output tokens that `room` covers, up to `output`, and their cost with the input; nothing if these are less than `least`.
local function fit(room, input, output, least, input_price, output_price)
  local amount = cost_of(input, output, input_price, output_price)
  if amount <= room then return output, amount end
  if output_price == 0 then return end
  local left = room * 1000000 - input * input_price
  local cut = left > 0 and (left - math.fmod(left, output_price)) / output_price or 0
  amount = cost_of(input, cut, input_price, output_price)
  if amount > room or cut < least then return end
  return cut, amount
end

local function read_hold(row)
  local state, amount, ends, client, counters = string.match(row, '^(s?)(%d+) (%d+) (%S*) ?(.*)$')
  return state == '', tonumber(amount), tonumber(ends), client, counters
end

-- The total held, the total of one app, the number of open holds, the total of the app's holds by counter, and whether a row
-- is left. Drops ended holds.
local function held_of(holds, client, now)
  local all, own, standing, by_counter, left = 0, 0, 0, {}, false
  local rows = redis.call('HGETALL', holds)
  for position = 1, #rows, 2 do
    local stands, amount, ends, holder, counters = read_hold(rows[position + 1])
    if ends <= now then
      redis.call('HDEL', holds, rows[position])
    else
      left = true
    end
    if stands and ends > now then
      all, standing = all + amount, standing + 1
      if holder == client then
        own = own + amount
        for counter in string.gmatch(counters, '%S+') do by_counter[counter] = (by_counter[counter] or 0) + amount end
      end
    end
  end
  return all, own, standing, by_counter, left
end

-- `others`: whether `holds` has other rows. Then it has an expiry, too.
local function write_hold(holds, id, amount, ends, client, counters, others)
  ends = int(ends)
  local row = int(amount) .. ' ' .. ends .. ' ' .. client
  if counters[1] then row = row .. ' ' .. table.concat(counters, ' ') end
  redis.call('HSET', holds, id, row)
  if others then redis.call('PEXPIREAT', holds, ends, 'GT') else redis.call('PEXPIREAT', holds, ends) end
end

local function paid_of(balance)
  return tonumber(redis.call('HGET', balance, 'paid') or '0')
end

-- The total of the open holds.
local function held_now(holds, now)
  local sum = 0
  for _, row in ipairs(redis.call('HVALS', holds)) do
    local amount, ends = string.match(row, '^(%d+) (%d+)')
    if amount and tonumber(ends) > now then sum = sum + tonumber(amount) end
  end
  return sum
end

-- Folds entries older than `retention` ms, and those beyond the newest `most`, into the opening balance; a hundred entries
-- at a call. The amount of an entry is its fourth element: 'kind' kind 'amount' amount ... `oldest`: the field oldest_at of
-- `balance`, if there is one. It spares most calls the reading of an entry, which takes longer than the writing of one.
local function fold(ledger, balance, oldest, retention, most, now)
  local over = redis.call('XLEN', ledger) - most
  if over <= 0 and oldest and tonumber(oldest) > now - retention then return end
  local function ripe(entry, position)
    return position <= over or tonumber(string.match(entry[1], '^%d+')) <= now - retention
  end
  local entries = redis.call('XRANGE', ledger, '-', '+', 'COUNT', '8')
  if #entries == 8 and ripe(entries[8], 8) then entries = redis.call('XRANGE', ledger, '-', '+', 'COUNT', '100') end
  local sum, folded, last = 0, {}, nil
  for position, entry in ipairs(entries) do
    oldest = string.match(entry[1], '^%d+')
    if not ripe(entry, position) then break end
    sum = sum + tonumber(entry[2][4])
    folded[#folded + 1] = entry[1]
    last = oldest
  end
  if oldest then redis.call('HSET', balance, 'oldest_at', oldest) end
  if not last then return end
  redis.call('XDEL', ledger, unpack(folded))
  redis.call('HINCRBY', balance, 'opening', int(sum))
  redis.call('HSET', balance, 'opening_at', last)
end

-- Appends an entry to the ledger; `amount` is negative for a charge. The caller has written `paid`, the balance after it.
local function append_entry(ledger, balance, kind, amount, paid, fields, oldest, retention, most, now)
  redis.call('XADD', ledger, '*', 'kind', kind, 'amount', int(amount), 'paid', int(paid), unpack(fields))
  fold(ledger, balance, oldest, retention, most, now)
end

-- Appends an entry and updates the balance, which it returns.
local function book_entry(ledger, balance, kind, amount, fields, retention, most, now)
  local paid = redis.call('HINCRBY', balance, 'paid', int(amount))
  local oldest = redis.call('HGET', balance, 'oldest_at')
  append_entry(ledger, balance, kind, amount, paid, fields, oldest, retention, most, now)
  return paid
end
