--- Remove and add entries in one section of the index of people. A bucket that is full becomes two in the same step.
--- KEYS[1] listed: where each bucket of the section begins
--- ARGV[1] bucket: prefix of the buckets' keys
--- ARGV[2] removed: entries, each behind a byte with its length
--- ARGV[3] added: entries in the same form
--- ARGV[4] most (number): entries in a bucket
--- ARGV[5] begin: '1' if the section may begin
--- @reply unknown
--- @reply ok
--- @derives bucket
--- @idempotent
--- @reserve
--- @include "buckets"

local function each(packed, act)
  local at, past = 1, #packed
  while at <= past do
    local stop = at + string.byte(packed, at)
    act(string.sub(packed, at + 1, stop))
    at = stop + 1
  end
end

-- Whether a key is before another, and the first place where they differ. Lua's own < follows the host's locale.
local function is_before(one, other)
  local shorter = math.min(#one, #other)
  for at = 1, shorter do
    local x, y = string.byte(one, at), string.byte(other, at)
    if x ~= y then return x < y, at end
  end
  return #one < #other, shorter + 1
end

-- Moves the upper half of a bucket to a new one. Its beginning is the shortest that fits, and a prefix of an entry.
-- In a slot that is being moved, the first write may fail; it changes nothing.
local function divide(start, all)
  local order, entry_of, shared = {}, {}, math.huge
  for place, entry in ipairs(all) do
    order[place] = key_of(entry)
    entry_of[order[place]] = entry
    local _, differs = is_before(order[1], order[place])
    if place > 1 then shared = math.min(shared, differs - 1) end
  end
  -- A number of the six bytes behind what all begin with: comparing every byte would take most of the script's time.
  local number = {}
  for _, key in ipairs(order) do
    local a, b, c, d, e, f = string.byte(key, shared + 1, shared + 6)
    number[key] = (((((a or 0) * 256 + (b or 0)) * 256 + (c or 0)) * 256 + (d or 0)) * 256 + (e or 0)) * 256 + (f or 0)
  end
  table.sort(order, function(one, other)
    local x, y = number[one], number[other]
    if x ~= y then return x < y end
    return (is_before(one, other))
  end)
  local middle = math.floor(#order / 2)
  local _, differs = is_before(order[middle], order[middle + 1])
  local after = string.sub(order[middle + 1], 1, differs)
  local lower, upper = {}, {}
  for place, key in ipairs(order) do
    local half = place <= middle and lower or upper
    half[#half + 1] = entry_of[key]
  end
  local left = bucket .. in_hex(start)
  local right = bucket .. in_hex(after)
  redis.call('RPUSH', right, unpack(upper))
  redis.call('ZADD', listed, 0, after)
  redis.call('RPUSH', left, unpack(lower))
  redis.call('LTRIM', left, -#lower, -1)
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

local function add(entry)
  local start = beginning_of(listed, key_of(entry))
  local name = bucket .. in_hex(start)
  if redis.call('LPOS', name, entry) then return end
  if redis.call('RPUSH', name, entry) > most then divide(start, redis.call('LRANGE', name, 0, -1)) end
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
each(removed, remove)
each(added, add)
local first = bucket .. in_hex('')
if redis.call('ZCARD', listed) == 1 and redis.call('EXISTS', first) == 0 then redis.call('DEL', listed) end
return {'ok'}
