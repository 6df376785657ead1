--- Tell whether a token is live, for its own app or for the API that it is for. (RFC 7662 2.2)
--- It makes the same reads for every token, and changes nothing: a superseded refresh token is no replay here.
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- ARGV[1] kind: access or refresh
--- ARGV[2] generation (number): of the token
--- ARGV[3] client
--- ARGV[4] lifetime (number): ms after which the family ends, rotated or not; 0: never
--- ARGV[5] audience: the API that asks, or '*' for the token's own app
--- @reply dead
--- @reply live scope expires entered api issued
--- @reserve
--- @include "scope"
--- @include "now"
--- @include "connected"

local person = redis.call('HMGET', user, 'status', app_field(client))
local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at')
local line = redis.call('HMGET', family, 'epoch', 'revoked', 'scope', 'generation', 'born')
local own = redis.call('GET', access)
local left = kind == 'access' and redis.call('PTTL', access) or redis.call('PTTL', family)
local now = now_ms()

-- A token that an app has for itself belongs to no person.
local api, issued, names = string.match(own or '', '^!(%S+) (%d+) (.+)$')
if audience ~= '*' and audience ~= api then return {'dead'} end
if api then
  if kind ~= 'access' or left <= 0 then return {'dead'} end
  return {'live', names, now + left, '', api, issued}
end

if person[1] ~= 'active' or not line[1] or line[1] ~= given[1] or line[2] or given[3] then return {'dead'} end
local scope = line[3]
if kind == 'access' then
  if not own then return {'dead'} end
  if own ~= '1' then scope = own end
else
  if generation < tonumber(line[4]) then return {'dead'} end
  -- The family's row outlives its last refresh token.
  local born = tonumber(line[5])
  if lifetime > 0 and born then left = math.min(left, born + lifetime - now) end
end
scope = intersect(scope, given[2])
if scope == '' or left <= 0 then return {'dead'} end
return {'live', scope, now + left, person[2] or '', '', ''}
