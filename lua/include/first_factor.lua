--- @include "undo"
-- The link by which a person who had no second step takes a first one back. Returns the address that it is to be mailed
-- to, '' where nobody confirmed that: whoever reads its mail may be a stranger. There are `most` for one address, and the
-- newest makes room: links reach back far enough for a later one to undo whatever it would.
local function undo_first_factor(user, undos, id, lasts, most, now)
  local row = redis.call('HMGET', user, 'verified', 'email')
  if row[1] ~= '1' then return '' end
  local entries, same, newest = open_undos(undos, now), 0, nil
  for other, entry in pairs(entries) do
    if entry.email == row[2] then
      same = same + 1
      if not newest or entry.at > entries[newest].at then newest = other end
    end
  end
  if same >= most then entries[newest] = nil end
  add_undo(undos, entries, id, row[2], lasts, now)
  return row[2]
end
