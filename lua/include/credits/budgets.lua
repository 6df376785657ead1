--- @include "now"
--- @include "spending"
-- Budgets (RFC 9396): what an app may spend, one of each type, in whole micro-dollars. Fields of a grant: `budget:<type>`,
-- 'limit period since ends models': period is total or month; since is the time of the decision (ms); ends (ms; 0: never);
-- models are names with spaces between them, or '*' for all. `used:<type>`, 'counter amount': what calls were charged that
-- count for the counter. A hold names its counters, so a call counts where its hold was placed: 't<since>' of a total budget,
-- 'm<month>' of a month, and the id of each delegated family above it. Such a family has `used`, its charges and those of all
-- families below, and the field `budget:<type>` for a total of its own.
local BUDGET_TYPES = {'credits', 'llm-inference'}

local function budget_of(text)
  local limit, period, since, ends, models = string.match(text, '^(%d+) (%a+) (%d+) (%d+) (.+)$')
  return {limit = tonumber(limit), period = period, since = since, ends = tonumber(ends), models = models}
end

-- The counter of calls that begin in `month`, and the charges with this counter. If the clock steps back over the end of a month,
-- the later month continues.
local function counted_of(budget, used, month)
  local counter, amount = string.match(used or '', '^(%S+) (%d+)$')
  local own = 't' .. budget.since
  if budget.period == 'month' then
    local booked = tonumber(string.match(counter or '', '^m(%d+)$') or '0')
    own = 'm' .. int(math.max(month, booked))
  end
  return own, counter == own and tonumber(amount) or 0
end

-- Whether a budget is for a model. No name in it has a space, but a model may.
local function is_for(models, model)
  if models == '*' then return true end
  for name in string.gmatch(models, '%S+') do
    if name == model then return true end
  end
  return false
end

-- What a call may still cost by one budget. `ends`: when the budget starts again (ms; 0: never); `open`: what calls in
-- progress hold of it; `barred`: the budget is not for this model.
local function room_of(budget, counter, used, by_counter, model, month_ends, now)
  local open = by_counter[counter] or 0
  local over = budget.ends > 0 and budget.ends <= now
  return {
    left = over and 0 or budget.limit - used - open, open = over and 0 or open,
    ends = budget.period == 'month' and not over and month_ends or 0,
    barred = not is_for(budget.models, model)
  }
end

-- The counters of a new call, and what it may cost by each budget of its grant and of each delegated family. `row` has the
-- values of BUDGET_FIELDS; `chain` the delegated families, each {id, used, budget of each type}; `by_counter` the open holds.
local function rooms_of(row, chain, by_counter, model, now)
  local counters, rooms, known = {}, {}, {}
  local month, month_ends
  for place in ipairs(BUDGET_TYPES) do
    local text = row[2 * place - 1]
    if text then
      if not month then month, month_ends = month_of(now) end
      local budget = budget_of(text)
      local counter, used = counted_of(budget, row[2 * place], month)
      if not known[counter] then counters[#counters + 1] = counter end
      known[counter] = true
      rooms[#rooms + 1] = room_of(budget, counter, used, by_counter, model, month_ends, now)
    end
  end
  for _, family in ipairs(chain) do
    counters[#counters + 1] = family[1]
    for place = 3, 4 do
      if family[place] then
        rooms[#rooms + 1] = room_of(budget_of(family[place]), family[1], tonumber(family[2] or '0'), by_counter, model, 0, now)
      end
    end
  end
  return counters, rooms
end

-- Adds a charge to a delegated family. One that has ended meanwhile must not come back as a row without an epoch.
local function book_family(family, charged)
  if redis.call('EXISTS', family) == 1 then redis.call('HINCRBY', family, 'used', int(charged)) end
end

-- Adds a charge to every budget that its hold has the counter of; `families` is the prefix of the keys of delegated families.
local function book_budgets(grant, families, counters, charged)
  local row = redis.call('HMGET', grant, unpack(BUDGET_FIELDS))
  for counter in string.gmatch(counters, '%S+') do
    local month = tonumber(string.match(counter, '^m(%d+)$') or '0')
    for place, name in ipairs(BUDGET_TYPES) do
      local budget = row[2 * place - 1] and budget_of(row[2 * place - 1])
      if budget and (month > 0) == (budget.period == 'month') then
        local own, used = counted_of(budget, row[2 * place], month)
        if own == counter then redis.call('HSET', grant, 'used:' .. name, counter .. ' ' .. int(used + charged)) end
      end
    end
    if #counter == 22 then book_family(families .. counter, charged) end
  end
end

-- What an answer says of a grant's budgets, three elements for each: type, the field, and what is used of it. `row` has the
-- values of BUDGET_FIELDS from the place `from` on.
local function budgets_told(row, from, now)
  local told = {}
  for place, name in ipairs(BUDGET_TYPES) do
    local text = row[from + 2 * place - 2]
    if text then
      local _, used = counted_of(budget_of(text), row[from + 2 * place - 1], (month_of(now)))
      for _, part in ipairs({name, text, int(used)}) do told[#told + 1] = part end
    end
  end
  return told
end

-- Whether a token request names only budgets as they were granted. `wanted`: lines 'type limit period ends models'.
local function are_granted(wanted, row, from)
  local granted = {}
  for place, name in ipairs(BUDGET_TYPES) do
    local text = row[from + 2 * place - 2]
    local limit, period, ends, models = string.match(text or '', '^(%d+) (%a+) %d+ (%d+) (.+)$')
    if limit then granted[table.concat({name, limit, period, ends, models}, ' ')] = true end
  end
  for line in string.gmatch(wanted, '[^\n]+') do
    if not granted[line] then return false end
  end
  return true
end

-- Sets the budgets that a person granted. `asked`: lines 'type limit period models'; `chosen`: lines 'type limit' of amounts
-- that the person set, which only lower; `lasts`: ms until they end, 0 for no end. A total budget counts from now on, a
-- month's has what the app was charged in this month already.
local function grant_budgets(grant, asked, chosen, lasts, now)
  local month = month_of(now)
  local _, spent, counted, row = spent_of(grant, month)
  local ends = lasts > 0 and math.ceil((now + lasts) / 1000) * 1000 or 0  -- apps see seconds
  for line in string.gmatch(asked, '[^\n]+') do
    local name, limit, period, models = string.match(line, '^(%S+) (%d+) (%a+) (.+)$')
    limit = tonumber(limit)
    for of, amount in string.gmatch(chosen, '(%S+) (%d+)') do
      if of == name then limit = math.min(limit, tonumber(amount)) end
    end
    local before, since, used = row[name == 'credits' and 1 or 3], now, '0'
    -- Two decisions never have the same counter.
    if before then since = math.max(now, tonumber(budget_of(before).since) + 1) end
    local counter = 't' .. int(since)
    if period == 'month' then counter, used = 'm' .. int(counted), int(spent) end
    redis.call('HSET', grant,
      'budget:' .. name, table.concat({int(limit), period, int(since), int(ends), models}, ' '),
      'used:' .. name, counter .. ' ' .. used)
  end
end

-- Changes the amounts of budgets that there are: lines 'type limit'. Returns whether one changed.
local function change_budgets(grant, chosen)
  local changed = false
  for name, amount in string.gmatch(chosen, '(%S+) (%d+)') do
    local text = redis.call('HGET', grant, 'budget:' .. name)
    local limit, rest = string.match(text or '', '^(%d+)( .*)$')
    if limit and limit ~= amount then
      redis.call('HSET', grant, 'budget:' .. name, amount .. rest)
      changed = true
    end
  end
  return changed
end

local function drop_budgets(grant)
  redis.call('HDEL', grant, unpack(BUDGET_FIELDS))
end
