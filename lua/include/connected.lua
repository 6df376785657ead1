-- The apps a person has connected, those in their grace window among them, stand in the person's row, as fields
-- `app:<client>`: a list of their own would take nearly as much as a grant. When it was connected, the grant says.

-- '1' where `profile` was ever granted to the app, and for those of a release before. '0' for any other: the app does not
-- know the person's id, and no event tells it.
local function app_field(client)
  return 'app:' .. client
end

-- Enters an app with the scopes of its grant. Once it knows the person's id, it knows it for good.
local function enter_app(user, client, scope)
  if string.find(' ' .. scope .. ' ', ' profile ', 1, true) then
    redis.call('HSET', user, app_field(client), '1')
  else
    redis.call('HSETNX', user, app_field(client), '0')
  end
end

-- Their client ids, in no order.
local function apps_of(row)
  local found = {}
  for _, field in ipairs(redis.call('HKEYS', row)) do
    found[#found + 1] = string.match(field, '^app:(.*)$')
  end
  return found
end

-- Rows that begin with client, scope, connected_at: the newest first. Read as numbers once, since a sort looks at each ten
-- times; the name is no index, so it is not part of an answer.
local function newest_first(rows)
  for _, row in ipairs(rows) do row.since = tonumber(row[3]) end
  table.sort(rows, function(one, other)
    if one.since == other.since then return one[1] < other[1] end
    return one.since > other.since
  end)
  return rows
end
