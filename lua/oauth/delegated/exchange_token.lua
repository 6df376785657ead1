--- Issue a delegated token, which comes from an access token and is no wider. (RFC 8693 2)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family: of the subject token
--- KEYS[4] access: the subject token
--- KEYS[5] child: the new family
--- KEYS[6] child_access: the new token
--- KEYS[7] window
--- KEYS[8] activity
--- ARGV[1] client
--- ARGV[2] actor: the app or the API that asks
--- ARGV[3] audience: the API that asks, or '*' for the app
--- ARGV[4] parent: the id of the subject token's family
--- ARGV[5] generation (number): of the subject token
--- ARGV[6] child_id
--- ARGV[7] target: the resource that the request names: an API, 'mcp', 'own', or empty
--- ARGV[8] apis: the APIs that the app may have tokens for, each with the lifetime of its tokens (ms)
--- ARGV[9] wanted: plain names of the requested scopes, or empty for all of the subject token
--- ARGV[10] registered: the app's registered scopes, those of APIs qualified
--- ARGV[11] details: the parts of budgets, lines 'type limit period models', or empty
--- ARGV[12] lasts (number): ms that the token is to live; 0: as long as the subject token
--- ARGV[13] name: for people, or empty
--- ARGV[14] jkt: the key that the new token is bound to, or empty
--- ARGV[15] same_key: '1' if only the key of the subject token counts
--- ARGV[16] access_ttl (number): ms
--- ARGV[17] deepest (number): tokens above a delegated one
--- ARGV[18] most (number): live delegated tokens of a grant
--- ARGV[19] limit (number)
--- ARGV[20] period (number): ms
--- @reply dead
--- @reply rate_limited reset retry
--- @reply no_key remaining reset
--- @reply other_key remaining reset
--- @reply invalid_target remaining reset
--- @reply too_deep remaining reset
--- @reply invalid_scope remaining reset
--- @reply too_long remaining reset
--- @reply invalid_details remaining reset
--- @reply too_many remaining reset
--- @reply ok remaining reset scope expires_in api budgets act
--- @durable
--- @include "scope"
--- @include "resource"
--- @include "window"
--- @include "issue"
--- @include "lineage"
--- @include "delegated"
--- @include "parts"
--- @include "audit"

if redis.call('HGET', user, 'status') ~= 'active' then return {'dead'} end
local now = now_ms()
local bound, row = parts_of_row(redis.call('GET', access) or '')
local left = redis.call('PTTL', access)
local api, _, at_api = read_api_row(row)
-- Only the app that the subject token is for, and the API that is its audience, may hand it on.
if row == '' or left < 1000 or (audience ~= '*' and audience ~= api) then return {'dead'} end
local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', unpack(BUDGET_FIELDS))
local line = redis.call('HMGET', family, 'epoch', 'revoked', 'scope', 'up', 'used', 'budget:credits',
  'budget:llm-inference', 'act', 'signed')
if not line[1] or line[1] ~= given[1] or line[2] or given[3] then return {'dead'} end
local chain = {}
if line[4] then
  chain = lineage(family, access, line[4], given[1])
  if not chain then return {'dead'} end
  table.insert(chain, 1, {parent, line[5], line[6], line[7]})
end
local resource = api or ''
local head = (api and api ~= 'mcp') and api .. '/' or ''
local function qualified(names) return head == '' and names or (string.gsub(names, '%S+', head .. '%0')) end
local had = names_at(api and qualified(at_api) or row ~= '1' and row or line[3], resource)
local still = names_at(intersect(intersect(qualified(had), given[2]), registered), resource)
if still == '' then return {'dead'} end

local admitted, remaining, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
-- RFC 9449: what comes from a bound token is bound too, of a public app to the same key.
if bound ~= '' and jkt == '' then return {'no_key', remaining, reset} end
if bound ~= '' and same_key == '1' and jkt ~= bound then return {'other_key', remaining, reset} end
-- A token for one resource never becomes one for another: the API that it is for would reach further than the app let it.
if target ~= '' and target ~= (resource == '' and 'own' or resource) then return {'invalid_target', remaining, reset} end
if not resource_of('', api, apis, access_ttl) then return {'invalid_target', remaining, reset} end
local up = parent .. ':' .. int(generation) .. (line[4] and ' ' .. line[4] or '')
local _, depth = string.gsub(up, '%S+', '')
if depth > deepest then return {'too_deep', remaining, reset} end
local names = still
if wanted ~= '' then
  if not covers(had, wanted) then return {'invalid_scope', remaining, reset} end
  names = intersect(still, wanted)
  if names == '' then return {'invalid_scope', remaining, reset} end
end
if lasts > left then return {'too_long', remaining, reset} end
if lasts == 0 then lasts = left end
-- Budgets are for Latchkey's own credits.
local spends = (resource == '' or resource == 'mcp') and has_scope(names, 'credits:spend')
local parts = spends and parts_of(details, chain, given, 4, now) or details == '' and {}
if not parts then return {'invalid_details', remaining, reset} end
local act = actor .. (line[8] and ' ' .. line[8] or '')
if not list_delegated(grant, family, access, given[1], child_id, now + lasts, most, now) then
  return {'too_many', remaining, reset}
end

-- The family outlives its token a little, for what a call in progress is charged.
issue_tokens(child, child_access, 0, qualified(names), access_row(resource, names, now), given[1], lasts + 60000,
  access_ttl, lasts, 0, false, now, jkt)
redis.call('HSET', child, 'up', up, 'act', act, unpack(parts))
if line[9] then redis.call('HSET', child, 'signed', line[9]) end
if name ~= '' then redis.call('HSET', child, 'name', name) end
redis.call('HSET', grant, 'last_used_at', int(now))
record(activity, 'token_exchanged', client, '', '')
local own = {child_id, '0'}
for place, kind in ipairs(BUDGET_TYPES) do
  own[place + 2] = false
  for at = 1, #parts, 2 do
    if parts[at] == 'budget:' .. kind then own[place + 2] = parts[at + 1] end
  end
end
table.insert(chain, 1, own)
return {'ok', remaining, reset, names, math.floor(lasts / 1000),
  resource ~= '' and api_token_fields(grant, resource, now, now + lasts, line[9]) or {},
  spends and parts_told(chain, given, 4, now) or {}, act}
