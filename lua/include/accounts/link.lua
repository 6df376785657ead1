-- A link that was mailed to a person. Fields: id, email (the person's address at that time), epoch (the session epoch at
-- that time), target (the person's target page), and used ('1') after its use.

-- The link with this id, if it is the newest of its purpose, and its person is active and has the same address. A change
-- of password ends every unused link, as it ends every session. Nil otherwise.
local function live_link(user, link, id)
  local row = redis.call('HMGET', link, 'id', 'email', 'epoch', 'target', 'used')
  if row[1] ~= id then return nil end
  local person = redis.call('HMGET', user, 'status', 'email', 'epoch')
  if person[1] ~= 'active' then return nil end
  local found = {email = row[2], target = row[4], used = row[5] == '1'}
  if not found.used and (person[2] ~= row[2] or person[3] ~= row[3]) then return nil end
  return found
end
