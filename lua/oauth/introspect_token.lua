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
--- @reply live scope expires entered api issued jkt signed budgets act
--- @reply itself scope expires api issued jkt
--- @reserve
--- @include "dpop"
--- @include "scope"
--- @include "resource"
--- @include "now"
--- @include "parts"
--- @include "lineage"
--- @include "connected"

local person = redis.call('HMGET', user, 'status', app_field(client))
local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'paused_at', unpack(BUDGET_FIELDS))
local line = redis.call('HMGET', family, 'epoch', 'revoked', 'scope', 'generation', 'born', 'signed', 'up',
  'act', 'used', 'budget:credits', 'budget:llm-inference')
local jkt, own = parts_of_row(redis.call('GET', access) or '')
local left = kind == 'access' and redis.call('PTTL', access) or redis.call('PTTL', family)
local now = now_ms()

local mark, api, issued, names = string.match(own, '^([!@])(%S+) (%d+) (.+)$')
if kind ~= 'access' then mark, api, jkt = false, false, '' end
if audience ~= '*' and audience ~= api then return {'dead'} end
issued = issued and int(math.floor(tonumber(issued) / 1000)) or ''
-- A token that an app has for itself belongs to no person.
if mark == '!' then
  if left <= 0 then return {'dead'} end
  return {'itself', names, int(now + left), api, issued, jkt}
end

if person[1] ~= 'active' or not line[1] or line[1] ~= given[1] or line[2] or given[3] or given[4] then return {'dead'} end
-- Who may not know of the token has the answer by now. The id of the family is of no use here.
local chain = line[7] and lineage(family, access, line[7], given[1])
if line[7] and not chain then return {'dead'} end
local scope = line[3]
if kind == 'access' then
  if own == '' then return {'dead'} end
  if own ~= '1' then scope = own end
else
  if generation < tonumber(line[4]) then return {'dead'} end
  -- The family's row outlives its last refresh token.
  local born = tonumber(line[5])
  if lifetime > 0 and born then left = math.min(left, born + lifetime - now) end
end
scope = intersect(scope, given[2])
if api then
  -- The names that the person still grants at this API.
  scope = intersect(names, names_at(given[2], api))
end
if scope == '' or left <= 0 then return {'dead'} end
local told = {}
if (not api or api == 'mcp') and has_scope(scope, 'credits:spend') then
  if chain then table.insert(chain, 1, {'', line[9], line[10], line[11]}) end
  told = chain and parts_told(chain, given, 5, now) or budgets_told(given, 5, now)
end
return {'live', scope, int(now + left), person[2] or '', api or '', issued, jkt, line[6] or '', told, line[8] or ''}
