-- What takes an account back, as it was when a link was mailed: by the id of each link, `ends at used email`. `ends` is
-- when the link ends, `at` when the address was changed or a first second step added, both in ms, `at` different for each;
-- `used` is '1' once the address is back.
local function read_undo(entry)
  local ends, at, used, email = string.match(entry or '', '^(%d+) (%d+) ([01]) (.+)$')
  return ends and {ends = tonumber(ends), at = tonumber(at), used = used == '1', email = email} or nil
end

-- Every entry that has not ended, by the id of its link.
local function open_undos(undos, now)
  local found, row = {}, redis.call('HGETALL', undos)
  for position = 1, #row, 2 do
    local entry = read_undo(row[position + 1])
    if entry and entry.ends > now then found[row[position]] = entry end
  end
  return found
end

-- Until when an address is kept for its person, in ms; 0 for one that no link brings back.
local function kept_until(entries, email)
  local ends = 0
  for _, entry in pairs(entries) do
    if entry.email == email and not entry.used then ends = math.max(ends, entry.ends) end
  end
  return ends
end

-- Where what concerns security is mailed to: the person's address, and behind it each that a link brings back.
local function warned_of(user, undos, now)
  local email = redis.call('HGET', user, 'email')
  local found, seen = {}, {[email] = true}
  for _, entry in pairs(open_undos(undos, now)) do
    if not entry.used and not seen[entry.email] then
      found[#found + 1] = entry.email
      seen[entry.email] = true
    end
  end
  table.sort(found)
  table.insert(found, 1, email)
  return found
end

-- Enters a link that works for `lasts` ms; `entries` are the open ones. Drops those that have ended.
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
