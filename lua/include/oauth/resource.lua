--- @include "now"
--- @include "scope"
-- An access token is for one resource: Latchkey itself, its MCP server ('mcp' in place of an API), or an API. A stored scope of an API is qualified by the API's client
-- id, as in 'api_x/orders:read'; a scope of Latchkey has no slash. A token for an API has the row '@api issued names': the
-- API's client id, the time (ms), and plain names. So our own endpoints know it by its first character.

-- The scopes of Latchkey itself among stored ones.
local function own_scopes(scopes)
  if not string.find(scopes, '/', 1, true) then return scopes end
  local own = {}
  for scope in string.gmatch(scopes, '%S+') do
    if not string.find(scope, '/', 1, true) then own[#own + 1] = scope end
  end
  return table.concat(own, ' ')
end

-- The plain names of the scopes that a resource ('' for Latchkey itself) has among stored ones. The MCP server has those of
-- Latchkey itself.
local function names_at(scopes, api)
  if api == '' or api == 'mcp' then return own_scopes(scopes) end
  local names, head = {}, api .. '/'
  for scope in string.gmatch(scopes, '%S+') do
    if string.sub(scope, 1, #head) == head then names[#names + 1] = string.sub(scope, #head + 1) end
  end
  return table.concat(names, ' ')
end

-- The stored scopes that plain names mean: Latchkey's own, and those of `api` ('' if there is none). False if one of the
-- names means none of them.
local function picked(scopes, names, api)
  local meant = {}
  for name in string.gmatch(names, '%S+') do
    local own = not string.find(name, '/', 1, true) and has_scope(scopes, name)
    meant[#meant + 1] = own and name or api .. '/' .. name
    if not has_scope(scopes, meant[#meant]) then return false end
  end
  return intersect(scopes, table.concat(meant, ' '))
end

-- The resource of a token ('' for Latchkey itself), and the lifetime of the token (ms). `target`: the resource that the app
-- named, an API's client id or 'own'; '' for that of its authorization, `authorized`: an API, or false. `apis`: the APIs that
-- the app may have tokens for, each with a lifetime. Nothing if the resource is none of these. Whether the person consented
-- to a scope there is for the caller to check.
local function resource_of(target, authorized, apis, access_ttl)
  local api = target == '' and authorized or target
  -- Scopes of the MCP server are Latchkey's own, so they would be at both. The person decided on one of the two.
  if (api == 'mcp') ~= (authorized == 'mcp') then return end
  if api == '' or api == 'own' then return '', access_ttl end
  local lifetime = string.match(' ' .. apis, ' ' .. api .. ' (%d+)')
  if lifetime then return api, tonumber(lifetime) end
end

-- The row of a token for a resource.
local function access_row(api, names, now)
  return api == '' and names or '@' .. api .. ' ' .. int(now) .. ' ' .. names
end

-- The API, the time (ms) and the names in the row of a token for an API; nothing for one for Latchkey itself.
local function read_api_row(row)
  local api, issued, names = string.match(row, '^@(%S+) (%d+) (.+)$')
  return api, tonumber(issued), names
end

-- What a script's answer says of a token for an API: the API, when the token was issued and ends (seconds), and the sign-in
-- (`signed_in`), and '1' if the person has paused the app.
local function api_token_fields(grant, api, issued, ends, signed)
  local paused = redis.call('HEXISTS', grant, 'paused_at') == 1 and '1' or ''
  return {api, int(math.floor(issued / 1000)), int(math.floor(ends / 1000)), signed or '', paused}
end
