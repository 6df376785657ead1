--- @include "preferences"
-- The links that take an account back, by id: `ends at used email`. `ends` is when the link ends, `at` when the address
-- was changed or the first second step added, both in ms, and `at` is different for each; `used` is '1' once the address
-- is back.
local function read_undo(entry)
  local ends, at, used, email = string.match(entry or '', '^(%d+) (%d+) ([01]) (.+)$')
  return ends and {ends = tonumber(ends), at = tonumber(at), used = used == '1', email = email} or nil
end

-- The open entries, by the id of the link.
local function open_undos(undos, now)
  local found, row = {}, redis.call('HGETALL', undos)
  for position = 1, #row, 2 do
    local entry = read_undo(row[position + 1])
    if entry and entry.ends > now then found[row[position]] = entry end
  end
  return found
end

-- The id and the entry of the newest unused link that brings back another address than `email`.
local function newest_undo(entries, email)
  local id, newest
  for one, entry in pairs(entries) do
    if not entry.used and entry.email ~= email and (not newest or entry.at > newest.at) then id, newest = one, entry end
  end
  return id, newest
end

-- How long an address is kept for its person (epoch ms); 0 if no link can bring it back.
local function kept_until(entries, email)
  local ends = 0
  for _, entry in pairs(entries) do
    if entry.email == email and not entry.used then ends = math.max(ends, entry.ends) end
  end
  return ends
end

-- Whom security mails go to: the person's preferences, the person's address, and each address that a link can bring
-- back.
local function warned_of(user, undos, now)
  local email, language, zone = unpack(redis.call('HMGET', user, 'email', 'language', 'zone'))
  local found, seen = {}, {[email] = true}
  for _, entry in pairs(open_undos(undos, now)) do
    if not entry.used and not seen[entry.email] then
      found[#found + 1] = entry.email
      seen[entry.email] = true
    end
  end
  table.sort(found)
  table.insert(found, 1, email)
  table.insert(found, 1, in_one(language, zone))
  return found
end

-- Adds a link that works for `lasts` ms; `entries` are the open ones. Drops ended ones.
local function add_undo(undos, entries, id, email, lasts, now)
  local at = now
  for _, entry in pairs(entries) do at = math.max(at, entry.at + 1) end
  for _, other in ipairs(redis.call('HKEYS', undos)) do
    if not entries[other] then redis.call('HDEL', undos, other) end
  end
  local entry = int(now + lasts) .. ' ' .. int(at) .. ' 0 ' .. email
  redis.call('HSET', undos, id, entry)
  redis.call('PEXPIREAT', undos, int(now + lasts))
  entries[id] = read_undo(entry)
end
