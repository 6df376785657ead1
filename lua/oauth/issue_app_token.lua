--- Write the access token that an app gets for itself, at an API. (RFC 6749 4.4)
--- KEYS[1] access
--- ARGV[1] api
--- ARGV[2] scope: names of the API's scopes
--- ARGV[3] ttl (number): ms
--- ARGV[4] jkt: the key that the token is bound to, or empty
--- @reply ok issued
--- @include "dpop"
--- @include "now"

-- The mark tells this row from those of a person's tokens, which have a family.
local now = now_ms()
redis.call('SET', access, bound_row('!' .. api .. ' ' .. int(now) .. ' ' .. scope, jkt), 'PXAT', int(now + ttl))
return {'ok', int(math.floor(now / 1000))}
