--- @include "budgets"
-- Parts of budgets that delegated tokens have (RFC 8693). `chain` lists the delegated families from a token up, each
-- {id, charges, budget of each type}; `row` has the values of BUDGET_FIELDS of the grant from the place `from` on.

-- What an answer says of the budgets of a delegated token, as `budgets_told`: of each type the nearest one.
local function parts_told(chain, row, from, now)
  local told, of_grant = {}, budgets_told(row, from, now)
  for place, name in ipairs(BUDGET_TYPES) do
    local found
    for _, family in ipairs(chain) do
      if not found and family[place + 2] then found = {family[place + 2], int(tonumber(family[2] or '0'))} end
    end
    for at = 1, #of_grant, 3 do
      if not found and of_grant[at] == name then found = {of_grant[at + 1], of_grant[at + 2]} end
    end
    if found then
      for _, part in ipairs({name, found[1], found[2]}) do told[#told + 1] = part end
    end
  end
  return told
end

local function is_within(models, others)
  if others == '*' then return true end
  if models == '*' then return false end
  for name in string.gmatch(models, '%S+') do
    if not is_for(others, name) then return false end
  end
  return true
end

-- The budgets of a new delegated token, fields and values. `wanted`: lines 'type limit period models'; models that are '*'
-- are those of the nearest budget above. Nothing if one is wider than a budget above it, or of a type that is not above.
local function parts_of(wanted, chain, row, from, now)
  local fields = {}
  for line in string.gmatch(wanted, '[^\n]+') do
    local name, limit, period, models = string.match(line, '^(%S+) (%d+) (%a+) (.+)$')
    if period ~= 'total' then return nil end
    local place = name == BUDGET_TYPES[1] and 1 or 2
    local above, any = {}, row[from] or row[from + 2]
    for _, family in ipairs(chain) do
      above[#above + 1] = family[place + 2] or nil
      any = any or family[3] or family[4]
    end
    above[#above + 1] = row[from + 2 * place - 2] or nil
    -- Where nothing is bounded, a part is a bound. A type that was not granted is none of this grant's.
    if any and #above == 0 then return nil end
    local ends = 0
    for at, text in ipairs(above) do
      local budget = budget_of(text)
      if at == 1 then
        ends = budget.ends
        if models == '*' then models = budget.models end
      end
      if tonumber(limit) > budget.limit or not is_within(models, budget.models) then return nil end
    end
    fields[#fields + 1] = 'budget:' .. name
    fields[#fields + 1] = table.concat({limit, 'total', int(now), int(ends), models}, ' ')
  end
  return fields
end
