--- Keep an event until the app has it; a repeated event is not kept again.
--- KEYS[1] delivery
--- KEYS[2] due
--- KEYS[3] listed: the deliveries of the app
--- KEYS[4] newest: the deliveries of all apps
--- ARGV[1] id
--- ARGV[2] client
--- ARGV[3] type
--- ARGV[4] sub
--- ARGV[5] occurred_at: ms
--- ARGV[6] details: JSON
--- ARGV[7] keep (number): ms
--- ARGV[8] most (number): deliveries in the list; older ones go when they are done
--- ARGV[9] bound (number): deliveries in the list, done or not
--- ARGV[10] prefix: prefix of a delivery's key, up to the id
--- ARGV[11] overall (number): deliveries in the list of all apps
--- @reply known
--- @reply ok
--- @derives prefix
--- @idempotent
--- @durable
--- @reserve
--- @include "now"
--- @include "touch"
--- @include "delivery"

-- Whether a delivery still waits.
local function waits(row)
  return is_delivery(row) and redis.call('HGET', row, 'state') == 'pending'
end

local function drop(due, listed, newest, prefix, old)
  redis.call('DEL', prefix .. old)
  redis.call('ZREM', due, old)
  redis.call('ZREM', listed, old)
  redis.call('ZREM', newest, old)
  return 1
end

-- Drops deliveries of a list beyond its bound: first those that are done, next logout tokens of the person with the most of
-- them, a tenth of these at once, and last the oldest. So nobody who signs in and out all day pushes out what is about
-- others, and no log-out pushes out a webhook event. Of the list of an earlier bound ten go at once.
local function make_room(due, listed, newest, prefix, bound)
  local ids, done, whose, number, heaviest = redis.call('ZRANGE', listed, 0, bound + 9), {}, {}, {}, nil
  for _, old in ipairs(ids) do
    local row = prefix .. old
    if not waits(row) then
      done[#done + 1] = old
    else
      local told = redis.call('HMGET', row, 'type', 'sub')
      if told[1] == 'session.ended' and old ~= id then
        local sub = told[2] or ''
        whose[old], number[sub] = sub, (number[sub] or 0) + 1
        if not heaviest or number[sub] > number[heaviest] then heaviest = sub end
      end
    end
  end
  local over = #ids - bound
  local victims, left = done, over
  if #done == 0 and heaviest then
    victims, left = {}, math.max(over, math.floor(number[heaviest] / 10))
    for _, old in ipairs(ids) do
      if whose[old] == heaviest then victims[#victims + 1] = old end
    end
  elseif #done == 0 then
    victims = ids
  end
  for place = 1, math.min(left, #victims) do drop(due, listed, newest, prefix, victims[place]) end
end

-- Adds a delivery to a list. Deliveries of the same millisecond keep their order too.
local function add(listed, id, now, keep)
  redis.call('ZREMRANGEBYSCORE', listed, '-inf', int(now - keep))
  local last = redis.call('ZRANGE', listed, -1, -1, 'WITHSCORES')
  redis.call('ZADD', listed, int(math.max(now, last[2] and tonumber(last[2]) + 1 or 0)), id)
  redis.call('PEXPIREAT', listed, int(now + keep))
end

if is_delivery(delivery) then
  touch(delivery)
  return {'known'}
end
if redis.call('EXISTS', delivery) == 1 then redis.call('DEL', delivery) end
local now = now_ms()
redis.call('HSET', delivery, 'client', client, 'type', type, 'sub', sub, 'occurred_at', occurred_at,
  'details', details, 'created_at', int(now), 'attempts', '0', 'tries', '0', 'state', 'pending',
  'next_attempt_at', int(now))
redis.call('PEXPIREAT', delivery, int(now + keep))
redis.call('ZADD', due, int(now), id)
add(listed, id, now, keep)
add(newest, id, now, keep)
redis.call('ZREMRANGEBYRANK', newest, 0, -overall - 1)
local count = redis.call('ZCARD', listed)
if count > most then
  -- A few at a time: later calls remove the rest.
  for _, old in ipairs(redis.call('ZRANGE', listed, 0, 9)) do
    if count > most and not waits(prefix .. old) then count = count - drop(due, listed, newest, prefix, old) end
  end
end
if count > bound then make_room(due, listed, newest, prefix, bound) end
return {'ok'}
