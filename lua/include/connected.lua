-- A person's connected apps, including those in their grace window, are fields `app:<client>` of the person's row: a
-- separate list would take nearly as much memory as a grant. The grant has the time of the connection.

-- '1' if `profile` or `openid` was ever granted to the app, or if an earlier release connected it. Otherwise '0': the app does not know
-- the person's id, and events must not reveal it.
local function app_field(client)
  return 'app:' .. client
end

-- Adds an app with the scopes of its grant. An app that once knew the person's id keeps its '1'.
local function enter_app(user, client, scope)
  local spaced = ' ' .. scope .. ' '
  if string.find(spaced, ' profile ', 1, true) or string.find(spaced, ' openid ', 1, true) then
    redis.call('HSET', user, app_field(client), '1')
  else
    redis.call('HSETNX', user, app_field(client), '0')
  end
end

-- A person who disconnects an app keeps it out of reach of issuers of assertions: a field of the person's row, with the time,
-- until they allow the app themselves.
local function kept_out_field(client)
  return 'kept_out:' .. client
end

local function kept_out_of(row)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', row)) do
    found[#found + 1] = string.match(field, '^kept_out:(.*)$')
  end
  table.sort(found)
  return found
end

-- The client ids of the connected apps, in no order.
local function apps_of(row)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', row)) do
    found[#found + 1] = string.match(field, '^app:(.*)$')
  end
  return found
end

-- Sorts rows that begin with client, scope, connected_at: newest first. Times are parsed once, because a sort reads each
-- ten times; the field has a name instead of an index, so it is not part of the answer.
local function newest_first(rows)
  for _, row in ipairs(rows) do row.since = tonumber(row[3]) end
  table.sort(rows, function(one, other)
    if one.since == other.since then return one[1] < other[1] end
    return one.since > other.since
  end)
  return rows
end
