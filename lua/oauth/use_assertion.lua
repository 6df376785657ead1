--- Use up a client assertion. (RFC 7523 3)
--- KEYS[1] assertion
--- ARGV[1] kept (number): ms
--- @reply used
--- @reply ok
--- @durable
--- @reserve
--- @include "now"

if not redis.call('SET', assertion, '1', 'NX', 'PX', int(kept)) then return {'used'} end
return {'ok'}
