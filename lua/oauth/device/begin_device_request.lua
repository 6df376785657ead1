--- Keep a device's authorization request until a person types its code. (RFC 8628 3.2)
--- KEYS[1] device
--- ARGV[1] id
--- ARGV[2] client
--- ARGV[3] params: the request, and what it was checked against, as JSON
--- ARGV[4] address: of the device
--- ARGV[5] agent: the device, as its User-Agent names it
--- ARGV[6] interval (number): seconds between two polls
--- ARGV[7] kept (number): ms
--- @reply taken
--- @reply ok
--- @include "now"

-- Another request has the same code. The caller draws a new one.
if redis.call('EXISTS', device) == 1 then return {'taken'} end
local now = now_ms()
redis.call('HSET', device, 'id', id, 'client', client, 'params', params, 'address', address, 'agent', agent, 'interval',
  int(interval), 'created_at', int(now))
redis.call('PEXPIREAT', device, int(now + kept))
return {'ok'}
