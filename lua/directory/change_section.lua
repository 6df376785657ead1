--- Remove and add entries in one section of the index of people. A bucket that is full is divided in the same step.
--- KEYS[1] listed: where each bucket of the section begins
--- ARGV[1] bucket: prefix of the buckets' keys
--- ARGV[2] removed: entries, each behind a byte with its length
--- ARGV[3] added: entries in the same form, in the order of their keys
--- ARGV[4] most (number): entries in a bucket
--- ARGV[5] begin: '1' if the section may begin
--- @reply unknown
--- @reply ok
--- @derives bucket
--- @idempotent
--- @reserve
--- @include "buckets"
--- @include "unpacked"

-- Entries of a bucket that are looked up one by one; for more, the bucket is read.
local FEW = 8

-- Whether a key is before another, and the first place where they differ. Lua's own < follows the host's locale.
local function is_before(one, other)
  local shorter = math.min(#one, #other)
  for at = 1, shorter do
    local x, y = string.byte(one, at), string.byte(other, at)
    if x ~= y then return x < y, at end
  end
  return #one < #other, shorter + 1
end

-- A number of the six bytes of a key behind what all keys begin with. Numbers sort much faster than texts.
local function number_of(key, shared)
  local a, b, c, d, e, f = string.byte(key, shared + 1, shared + 6)
  return (((((a or 0) * 256 + (b or 0)) * 256 + (c or 0)) * 256 + (d or 0)) * 256 + (e or 0)) * 256 + (f or 0)
end

-- The length of what all keys begin with.
local function shared_by(all)
  local first, shared = all[1], #all[1]
  local begin = first
  for _, key in ipairs(all) do
    if string.sub(key, 1, shared) ~= begin then
      local _, differs = is_before(first, key)
      shared = math.min(shared, differs - 1)
      begin = string.sub(first, 1, shared)
    end
  end
  return shared
end

-- The lower half of some entries, where the upper half begins, and the upper half. That beginning is the shortest that
-- fits, and a prefix of an entry.
local function halves(all)
  local found = {}
  for place, entry in ipairs(all) do found[place] = key_of(entry) end
  local shared, number, sorted = shared_by(found), {}, {}
  for place, key in ipairs(found) do
    local value = number_of(key, shared)
    number[key], sorted[place] = value, value
  end
  table.sort(sorted)
  local middle = math.floor(#all / 2)
  local last, first = sorted[middle], sorted[middle + 1]
  local order
  if last == first then
    order = {unpack(found)}
    table.sort(order, function(one, other)
      local x, y = number[one], number[other]
      if x ~= y then return x < y end
      return (is_before(one, other))
    end)
  end
  local highest, lowest = order and order[middle], order and order[middle + 1]
  local lower, upper = {}, {}
  for place, key in ipairs(found) do
    local value = number[key]
    local is_lower
    if order then is_lower = key == highest or is_before(key, highest) else is_lower = value <= last end
    if is_lower then
      lower[#lower + 1] = all[place]
      if value == last and (not highest or is_before(highest, key)) then highest = key end
    else
      upper[#upper + 1] = all[place]
      if value == first and (not lowest or is_before(key, lowest)) then lowest = key end
    end
  end
  local _, differs = is_before(highest, lowest)
  return lower, string.sub(lowest, 1, differs), upper
end

-- Writes the entries of a bucket that are too many for it: half of them go to a new bucket, until each has few enough.
-- In a slot that is being moved, the first write may fail; it changes nothing.
local function divide(start, all)
  local lower, after, upper = halves(all)
  if #upper > most then
    divide(after, upper)
  else
    redis.call('RPUSH', bucket .. in_hex(after), unpack(upper))
  end
  redis.call('ZADD', listed, 0, after)
  if #lower > most then return divide(start, lower) end
  local name = bucket .. in_hex(start)
  redis.call('DEL', name)
  redis.call('RPUSH', name, unpack(lower))
end

-- Moves all entries of a bucket to the one before it.
local function join(start, all)
  local before = redis.call('ZREVRANGEBYLEX', listed, '(' .. start, '-', 'LIMIT', '0', '1')[1] or ''
  local left = bucket .. in_hex(before)
  local gone = bucket .. in_hex(start)
  if #all > 0 then redis.call('RPUSH', left, unpack(all)) end
  redis.call('ZREM', listed, start)
  redis.call('DEL', gone)
  local joined = redis.call('LRANGE', left, 0, -1)
  if #joined > most then divide(before, joined) end
end

-- Adds entries to a bucket, those that it does not have.
local function add(start, entries)
  local name = bucket .. in_hex(start)
  local fresh = {}
  if #entries <= FEW then
    for _, entry in ipairs(entries) do
      if not redis.call('LPOS', name, entry) then fresh[#fresh + 1] = entry end
    end
    if #fresh > 0 and redis.call('RPUSH', name, unpack(fresh)) > most then
      divide(start, redis.call('LRANGE', name, 0, -1))
    end
    return
  end
  local all, has = redis.call('LRANGE', name, 0, -1), {}
  for _, entry in ipairs(all) do has[entry] = true end
  for _, entry in ipairs(entries) do
    if not has[entry] then fresh[#fresh + 1] = entry end
  end
  if #all + #fresh > most then
    for _, entry in ipairs(fresh) do all[#all + 1] = entry end
    divide(start, all)
  elseif #fresh > 0 then
    redis.call('RPUSH', name, unpack(fresh))
  end
end

-- Adds entries in the order of their keys, bucket by bucket; one that is given twice counts once. `starts`: some beginnings
-- from a bucket on; the last one only ends the bucket before it, and is false at the end of the section.
local function add_all(entries)
  local starts, place, at = {}, 1, 1
  while at <= #entries do
    local key = key_of(entries[at])
    while starts[place + 1] and not is_before(key, starts[place + 1]) do place = place + 1 end
    if starts[place + 1] == nil then
      local limit = #entries - at + 2
      starts, place = {beginning_of(listed, key), false}, 1
      if limit > 2 then starts = redis.call('ZRANGEBYLEX', listed, '[' .. starts[1], '+', 'LIMIT', '0', limit) end
      if #starts < limit then starts[#starts + 1] = false end
    end
    local after, some = starts[place + 1], {}
    repeat
      if entries[at] ~= some[#some] then some[#some + 1] = entries[at] end
      at = at + 1
    until at > #entries or after and not is_before(key_of(entries[at]), after)
    add(starts[place], some)
  end
end

local function begins_one(start, all)
  for _, entry in ipairs(all) do
    if string.sub(key_of(entry), 1, #start) == start then return true end
  end
  return false
end

local function remove(entry)
  local start = beginning_of(listed, key_of(entry))
  local name = bucket .. in_hex(start)
  if redis.call('LREM', name, 0, entry) == 0 or start == '' then return end
  local rest = redis.call('LRANGE', name, 0, -1)
  -- No beginning may outlast the people whose text it is a part of.
  if #rest < most / 4 or not begins_one(start, rest) then join(start, rest) end
end

if redis.call('EXISTS', listed) == 0 then
  if added == '' then return {'ok'} end
  if begin ~= '1' then return {'unknown'} end
  redis.call('ZADD', listed, 0, '')
end
for _, entry in ipairs(unpacked(removed)) do remove(entry) end
add_all(unpacked(added))
local first = bucket .. in_hex('')
if redis.call('ZCARD', listed) == 1 and redis.call('EXISTS', first) == 0 then redis.call('DEL', listed) end
return {'ok'}
