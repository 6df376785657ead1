--- Keep an operator key, and list it.
--- KEYS[1] key: its row
--- KEYS[2] all: the ids of all keys, by the time they were made
--- ARGV[1] id
--- ARGV[2] digest: of the key
--- ARGV[3] role
--- ARGV[4] name: or empty
--- ARGV[5] network: the only one that it works from, or empty
--- ARGV[6] ends (number): when it expires, ms; 0 for never
--- ARGV[7] most (number): keys that may exist
--- @reply full
--- @reply ok made
--- @durable
--- @include "now"

local now = now_ms()
if redis.call('ZCARD', all) >= most then return {'full'} end
redis.call('HSET', key, 'digest', digest, 'role', role, 'name', name, 'network', network, 'made_at', int(now),
  'ends_at', int(ends))
if ends > 0 then redis.call('PEXPIREAT', key, int(ends)) end
redis.call('ZADD', all, int(now), id)
return {'ok', int(now)}
