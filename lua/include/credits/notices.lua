--- @include "credits"
--- @include "spending"
--- @include "daily"
--- @include "preferences"
-- Notices to a person, by mail, about spending limits and a low balance. Whoever writes what crosses a line returns the
-- notice of the crossing, so a crossing has one notice, however many processes there are. A notice is three elements of
-- a list: what it is about (app, day or balance), the share of the limit in percent, and the limit in micro-dollars.
-- Marks of limits that are used up: limit_told of a grant ('month limit'), day_told of `balance` ('day limit').

-- Whether the person wants these mails, and to whom they go: preferences and address.
local function noticed(user)
  local row = redis.call('HMGET', user, 'email', 'language', 'zone', 'credit_mails')
  if not row[1] or row[4] == 'off' then return false, {} end
  return true, {in_one(row[2], row[3]), row[1]}
end

-- Adds the notice that a limit is used up, once for each period and limit.
local function note_full(found, about, key, period, limit)
  local field = about == 'app' and 'limit_told' or 'day_told'
  local mark = int(period) .. ' ' .. int(limit)
  if redis.call('HGET', key, field) == mark then return end
  redis.call('HSET', key, field, mark)
  for _, part in ipairs({about, '100', int(limit)}) do found[#found + 1] = part end
end

local function note_share(found, share, about, key, period, limit)
  if share == 100 then return note_full(found, about, key, period, limit) end
  for _, part in ipairs({about, int(share), int(limit)}) do found[#found + 1] = part end
end

-- The notices of a charge that crossed these shares of the app's and the day's limit, or made the balance `low` (micro-dollars;
-- nil if it did not), and to whom they go.
local function notices_of_charge(user, grant, balance, app, limit, month, day, person_day, counted_day, low)
  local wanted, to = noticed(user)
  local found = {}
  if not wanted then return found, {} end
  if app then note_share(found, app, 'app', grant, month, limit) end
  if day then note_share(found, day, 'day', balance, counted_day, person_day) end
  if low then
    for _, part in ipairs({'balance', '0', int(low)}) do found[#found + 1] = part end
  end
  return found, #found > 0 and to or {}
end

-- The notice of a call that a used-up limit refused, and to whom it goes.
local function notice_of_refusal(user, grant, balance, refusal, ceiling, person_day, now)
  local found, wanted, to = {}, noticed(user)
  if not wanted then return found, {} end
  if refusal == 'app_spend_limit' then
    local _, _, month = spent_of(grant, (month_of(now)))
    note_full(found, 'app', grant, month, ceiling)
  elseif refusal == 'person_spend_limit' then
    local _, day = spent_on(balance, day_of(now))
    note_full(found, 'day', balance, day, person_day)
  end
  return found, #found > 0 and to or {}
end
