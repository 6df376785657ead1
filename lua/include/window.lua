--- @include "now"
-- The sliding window: `limit` requests per `period` ms, stored as one counter that slides in 20 steps. By step k after its
-- anchor, floor(k * limit / 20) of the counted requests have left the window. An empty row equals no row; the key expires
-- when the window is empty.
local WINDOW_STEPS = 20

local function left_by(anchor, limit, step, at)
  return math.floor(math.floor((at - anchor) / step) * limit / WINDOW_STEPS)
end

-- Takes one request from the window. Returns: admitted (boolean), remaining, reset (epoch ms when the window is empty
-- again), retry (whole seconds until the next place is free; 0 if admitted). `counted`: the window has counted this
-- request before, so it is admitted without a change.
local function take_window(key, limit, period, now, counted)
  local step = period / WINDOW_STEPS
  local anchor, count, stepped_back = now, 0, false
  local row = redis.call('GET', key)
  if row then
    local first, number, last = string.match(row, '^(%d+) (%d+) (%d+)$')
    first, number, last = tonumber(first), tonumber(number), tonumber(last)
    stepped_back = now < last
    -- If the clock steps back, the last count stays with a new anchor: the window never refills.
    local inside = number - left_by(first, limit, step, stepped_back and last or now)
    if inside > 0 then
      if stepped_back then count = inside else anchor, count = first, number end
    end
  end
  local admitted = counted or count - left_by(anchor, limit, step, now) < limit
  if admitted and not counted then count = count + 1 end
  local reset = anchor + step * math.ceil(WINDOW_STEPS * count / limit)
  if not counted and (admitted or stepped_back) then
    redis.call('SET', key, int(anchor) .. ' ' .. int(count) .. ' ' .. int(now), 'PXAT', int(reset))
  end
  if admitted then
    return true, limit - (count - left_by(anchor, limit, step, now)), reset, 0
  end
  local free = anchor + step * math.ceil(WINDOW_STEPS * (count - limit + 1) / limit)
  return false, 0, reset, math.max(1, math.ceil((free - now) / 1000))
end

-- Gives back one request, for work that was refused for lack of room.
local function give_back(key, limit, period, now)
  local first, number, last = string.match(redis.call('GET', key) or '', '^(%d+) (%d+) (%d+)$')
  if not first then return end
  first, number = tonumber(first), tonumber(number) - 1
  local reset = first + period / WINDOW_STEPS * math.ceil(WINDOW_STEPS * number / limit)
  if number < 1 or reset <= now then
    redis.call('DEL', key)
  else
    redis.call('SET', key, int(first) .. ' ' .. int(number) .. ' ' .. last, 'PXAT', int(reset))
  end
end
