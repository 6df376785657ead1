--- @include "audit"
--- @include "device"
-- Wrong codes in a row, of strangers and of each known device apart: nobody who knows the password locks the person out
-- of a browser that they sign in with. `guesses` is a hash: count and until, or count:<device> and until:<device>. After a
-- reset by mail (`shared`) devices count as strangers until a code was right: who has the mailbox makes one each time.
local function fields_of(device)
  local behind = device ~= '' and ':' .. device or ''
  return 'count' .. behind, 'until' .. behind
end

-- Takes one try at a code. Each `limit` wrong ones bring a pause, of `pause` ms at first, then twice as long, up to
-- `longest`; after `most` no code counts until there is another password. A device that came to `most` is a stranger's.
-- Returns a word, then for 'rate_limited' reset and retry; for 'try' whose count this is, and what a wrong code is to be
-- told of: 'burst', 'stopped' or ''.
local function take_guess(guesses, audit, device, limit, pause, longest, most, address, agent, now)
  local counted, paused = fields_of(device)
  local row = redis.call('HMGET', guesses, counted, paused, 'shared')
  local count, ends = tonumber(row[1] or '0'), math.min(tonumber(row[2] or '0'), now + longest)
  if device ~= '' and (count >= most or row[3]) then
    return take_guess(guesses, audit, '', limit, pause, longest, most, address, agent, now)
  end
  if count >= most then return 'stopped' end
  if now < ends then return 'rate_limited', ends, math.ceil((ends - now) / 1000) end
  count = count + 1
  redis.call('HSET', guesses, counted, int(count))
  if count % limit == 0 then
    redis.call('HSET', guesses, paused, int(now + math.min(longest, pause * 2 ^ (count / limit - 1))))
  end
  if count % limit == 0 or count % limit == math.floor(limit / 2) then
    record(audit, 'codes_guessed', '', address, agent)
  end
  return 'try', device, count == math.floor(limit / 2) and 'burst' or count == most and 'stopped' or ''
end

-- What was mistyped before does not count against somebody who has the right one.
local function forgive(guesses, device)
  redis.call('HDEL', guesses, fields_of(device))
  if device == '' then redis.call('HDEL', guesses, 'shared') end
end
