--- @include "now"
--- @include "period"
--- @include "scope"
-- An app's spending of a person's credits in a calendar month (UTC). Fields of the grant: spend_limit (absent: no limit),
-- spend_month, and spent, which counts only for that month.

-- The number of the month of `now`, and when the next month begins (epoch ms). Uses the Gregorian calendar, with years that
-- begin in March.
local function month_of(now)
  local floor = math.floor
  local day = floor(now / 86400000) + 719468
  local era = floor(day / 146097)
  local day_of_era = day - era * 146097
  local year_of_era = floor((day_of_era - floor(day_of_era / 1460) + floor(day_of_era / 36524)
    - floor(day_of_era / 146096)) / 365)
  local day_of_year = day_of_era - (365 * year_of_era + floor(year_of_era / 4) - floor(year_of_era / 100))
  local month = floor((5 * day_of_year + 2) / 153)  -- 0 is March
  local year = year_of_era + era * 400
  local next_year, next_month = year, month + 1
  if next_month == 12 then next_year, next_month = year + 1, 0 end
  local next_era = floor(next_year / 400)
  local in_era = next_year - next_era * 400
  local next_day = next_era * 146097 + 365 * in_era + floor(in_era / 4) - floor(in_era / 100)
    + floor((153 * next_month + 2) / 5) - 719468
  return year * 12 + month, next_day * 86400000
end

-- The fields of budgets (`lua/include/credits/budgets.lua`), read with the limit so that a call takes no more commands.
local BUDGET_FIELDS = {'budget:credits', 'used:credits', 'budget:llm-inference', 'used:llm-inference'}

-- The limit (nil without one), the spending of this month, the month that counts, and the values of BUDGET_FIELDS.
local function spent_of(grant, month)
  local row = redis.call('HMGET', grant, 'spend_limit', 'spend_month', 'spent', unpack(BUDGET_FIELDS))
  local spent, counted = in_period(row[2], row[3], month)
  return row[1] and tonumber(row[1]) or nil, spent, counted, {row[4], row[5], row[6], row[7]}
end

-- '1' if a budget of an earlier decision also limits what an app may now spend, otherwise empty. `granted`: the scopes that it
-- has; `asked` and `details`: what it asks for.
local function still_budgeted(grant, granted, asked, details)
  if details ~= '' or granted == '' or not has_scope(asked, 'credits:spend') then return '' end
  local row = redis.call('HMGET', grant, 'budget:credits', 'budget:llm-inference')
  return (row[1] or row[2]) and '1' or ''
end

-- `wanted`: '' keeps the limit, 'none' removes it, otherwise micro-dollars a month.
local function set_spend_limit(grant, wanted)
  if wanted == 'none' then
    redis.call('HDEL', grant, 'spend_limit')
  elseif wanted ~= '' then
    redis.call('HSET', grant, 'spend_limit', wanted)
  end
end
