--- @include "audit"
--- @include "device"
-- Counts wrong codes in a row, separately for strangers and for known devices: somebody who knows the password cannot lock
-- the person out of a known device. `guesses` is a hash: count and until of strangers; count:<device> and until:<device>;
-- known, the sum over devices, so many devices give no extra guesses. After a reset by mail (`shared`) devices count as
-- strangers until a code is right, because a thief with the mailbox can make a new device with each reset.
local function fields_of(device)
  local behind = device ~= '' and ':' .. device or ''
  return 'count' .. behind, 'until' .. behind
end

-- Takes one try at a code. Every `limit` wrong codes cause a pause, first of `pause` ms and each time twice as long, up to
-- `longest`; after `most` no code counts until the password changes. If the known devices together reach `most`, each
-- counts as a stranger's. Returns a word; with 'rate_limited' also reset and retry; with 'try' also the device that it
-- counts for ('' for strangers), and the notice for a wrong code: 'burst', 'stopped' or ''.
local function take_guess(guesses, audit, device, limit, pause, longest, most, address, agent, now)
  local counted, paused = fields_of(device)
  local row = redis.call('HMGET', guesses, counted, paused, 'shared', 'known')
  local count, ends = tonumber(row[1] or '0'), math.min(tonumber(row[2] or '0'), now + longest)
  -- A count older than the sum is its own sum.
  local all = device ~= '' and math.max(count, tonumber(row[4] or '0')) or count
  if device ~= '' and (all >= most or row[3]) then
    return take_guess(guesses, audit, '', limit, pause, longest, most, address, agent, now)
  end
  if count >= most then return 'stopped' end
  if now < ends then return 'rate_limited', ends, math.ceil((ends - now) / 1000) end
  count, all = count + 1, all + 1
  redis.call('HSET', guesses, counted, int(count))
  if device ~= '' then redis.call('HSET', guesses, 'known', int(all)) end
  if count % limit == 0 then
    redis.call('HSET', guesses, paused, int(now + math.min(longest, pause * 2 ^ (count / limit - 1))))
  end
  if all % limit == 0 or all % limit == math.floor(limit / 2) then record(audit, 'codes_guessed', '', address, agent) end
  return 'try', device, all == math.floor(limit / 2) and 'burst' or all == most and 'stopped' or ''
end

-- A right code clears the wrong ones before it; wrong codes of other devices still count.
local function forgive(guesses, device)
  local counted, paused = fields_of(device)
  if device == '' then
    redis.call('HDEL', guesses, counted, paused, 'shared')
  else
    local row = redis.call('HMGET', guesses, counted, 'known')
    local left = tonumber(row[2] or '0') - tonumber(row[1] or '0')
    if left > 0 then redis.call('HSET', guesses, 'known', int(left)) else redis.call('HDEL', guesses, 'known') end
    redis.call('HDEL', guesses, counted, paused)
  end
end
