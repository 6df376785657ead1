--- @include "undo"
-- Makes the link that undoes a person's first second step. Returns the address for the mail, or '' if nobody confirmed the
-- address, because it may belong to a stranger. One address has at most `most` links, and the newest makes room: a later
-- link reaches back far enough to undo the same.
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
