--- @include "scope"
--- @include "window"
--- @include "undo"
-- The allowance: what an app may spend of a person's credits in a month, at most: its limit, or a budget if that is less.
-- Micro-dollars, 'none' without a limit, or nil if the app may not spend at all.
local function allowance_of(grant)
  local row = redis.call('HMGET', grant, 'scope', 'revoked_at', 'spend_limit', 'budget:credits', 'budget:llm-inference')
  if not row[1] or row[2] or not has_scope(row[1], 'credits:spend') then return nil end
  local least = row[3] or 'none'
  for place = 4, 5 do
    local limit = string.match(row[place] or '', '^%d+')
    if limit and (least == 'none' or tonumber(limit) < tonumber(least)) then least = limit end
  end
  return least
end

-- How an allowance exceeds the previous one: 'connected', 'raised', 'removed', or '' if it does not.
local function growth(before, after)
  if not after or before == after then return '' end
  if not before then return 'connected' end
  if after == 'none' then return 'removed' end
  return before ~= 'none' and tonumber(after) > tonumber(before) and 'raised' or ''
end

-- Remembers the allowance before its growth for `lasts` ms, as long as a link can take an account back. `raised` has the
-- time of the last growth, and the least allowance before.
local function note_growth(grant, before, after, lasts, now)
  if not before or growth(before, after) == '' then return end
  local at, least = string.match(redis.call('HGET', grant, 'raised') or '', '^(%d+) (%d+)$')
  if not at or tonumber(at) + lasts <= now or tonumber(least) > tonumber(before) then least = before end
  redis.call('HSET', grant, 'raised', int(now) .. ' ' .. least)
end

-- Takes back the growth of an allowance since `since` (ms). Returns whether there was any.
local function lower_again(grant, since)
  local at, least = string.match(redis.call('HGET', grant, 'raised') or '', '^(%d+) (%d+)$')
  redis.call('HDEL', grant, 'raised')
  local limit = redis.call('HGET', grant, 'spend_limit')
  if not at or tonumber(at) < since or limit and tonumber(limit) <= tonumber(least) then return false end
  redis.call('HSET', grant, 'spend_limit', least)
  return true
end

-- The notice to mail to the person if an allowance exceeds the previous one: {growth, allowance, mails left in the window
-- of mails, addresses}. Empty if the allowance did not grow, or the window is full.
local function told_of_growth(user, undos, before, after, mails, most, period, now)
  local how = growth(before, after)
  if how == '' then return {} end
  local admitted, left = take_window(mails, most, period, now)
  return admitted and {how, after, int(left), warned_of(user, undos, now)} or {}
end
