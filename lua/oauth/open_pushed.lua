--- Read a pushed authorization request for the browser that arrives with it first, and for no other. (RFC 9126 4)
--- KEYS[1] pushed
--- KEYS[2] all_pushed
--- ARGV[1] id
--- ARGV[2] browser: a digest of what only this browser has
--- ARGV[3] kept (number): ms from the arrival
--- @reply gone
--- @reply ok params
--- @include "now"
--- @include "pushed"

local row = redis.call('HMGET', pushed, 'params', 'browser', 'ended', 'network')
if not row[1] or row[3] then return {'gone'} end
if not row[2] then
  local ends = int(now_ms() + kept)
  redis.call('HSET', pushed, 'browser', browser)
  redis.call('PEXPIREAT', pushed, ends)
  redis.call('ZADD', all_pushed, ends, entry_of(id, row[4]))
  redis.call('PEXPIREAT', all_pushed, ends)
elseif row[2] ~= browser then
  return {'gone'}
end
return {'ok', row[1]}
