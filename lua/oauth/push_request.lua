--- Keep a pushed authorization request until the browser arrives with it. (RFC 9126 2.2)
--- KEYS[1] pushed
--- KEYS[2] all_pushed: the app's pushed requests, by the times at which they end
--- ARGV[1] id
--- ARGV[2] params: the request, as a form
--- ARGV[3] kept (number): ms
--- ARGV[4] longest (number): ms, the most that a request is kept
--- ARGV[5] most (number): requests of one app
--- ARGV[6] prefix: of the keys of the app's pushed requests
--- ARGV[7] ended: ids of requests that have ended, with spaces between
--- ARGV[8] network: that pushes for a public app, or empty
--- @reply full ends
--- @reply ok
--- @derives prefix
--- @include "now"
--- @include "pushed"

local DRAWN = 50

local function drop(one, of)
  redis.call('DEL', prefix .. one)
  redis.call('ZREM', all_pushed, entry_of(one, of))
end

local function drop_ended()
  for one in string.gmatch(ended, '%S+') do drop(one, redis.call('HGET', prefix .. one, 'network')) end
end

-- Drops a request of a network that has many. Some requests are drawn by lot. Of the network with the most of them, the one
-- that ends first makes room: before others, one that no browser has arrived with.
local function make_room()
  local drawn, counts, first, most = redis.call('ZRANDMEMBER', all_pushed, DRAWN, 'WITHSCORES'), {}, {}, ''
  for at = 1, #drawn, 2 do
    local one, of, ends = string.match(drawn[at], '^%S+'), string.match(drawn[at], ' (.*)$') or '', tonumber(drawn[at + 1])
    if one ~= id then
      counts[of] = (counts[of] or 0) + 1
      if not first[of] or ends < first[of].ends then first[of] = {one = one, ends = ends} end
      if counts[of] > (counts[most] or 0) then most = of end
    end
  end
  if first[most] then drop(first[most].one, most) end
end

local now = now_ms()
local live = '(' .. int(now)
local function is_full() return redis.call('ZCOUNT', all_pushed, live, '+inf') >= most end
if is_full() then drop_ended() end
local crowded = is_full()
-- An app that proves itself fills its own room.
if crowded and network == '' then
  return {'full', redis.call('ZRANGE', all_pushed, live, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]}
end
-- First what a full store refuses.
redis.call('HSET', pushed, 'params', params)
if network ~= '' then redis.call('HSET', pushed, 'network', network) end
redis.call('PEXPIREAT', pushed, int(now + kept))
redis.call('ZADD', all_pushed, int(now + kept), entry_of(id, network))
redis.call('PEXPIREAT', all_pushed, int(now + longest))
redis.call('ZREMRANGEBYSCORE', all_pushed, '-inf', int(now))
drop_ended()
if crowded then make_room() end
return {'ok'}
