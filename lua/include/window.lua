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
-- request before, so it is admitted without a change. `several`: takes as many, or fewer if the window has no more room;
-- `taken`, the fifth value, is how many.
local function take_window(key, limit, period, now, counted, several)
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
  local free = limit - (count - left_by(anchor, limit, step, now))
  local taken = counted and 0 or math.max(0, math.min(several or 1, free))
  local admitted = counted or taken > 0
  count = count + taken
  local reset = anchor + step * math.ceil(WINDOW_STEPS * count / limit)
  if not counted and (admitted or stepped_back) then
    redis.call('SET', key, int(anchor) .. ' ' .. int(count) .. ' ' .. int(now), 'PXAT', int(reset))
  end
  if admitted then return true, free - taken, reset, 0, taken end
  local next_free = anchor + step * math.ceil(WINDOW_STEPS * (count - limit + 1) / limit)
  return false, 0, reset, math.max(1, math.ceil((next_free - now) / 1000)), 0
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
