-- Where a delegated token comes from (RFC 8693). The field `up` of its family names the tokens above it,
-- 'family:generation', the nearest first. A delegated token is dead once any of these is.

-- The fields of a family above a token, whose access token is `access`; nothing if it is dead.
local function ancestor(family, access, epoch)
  if redis.call('EXISTS', access) == 0 then return nil end
  local row = redis.call('HMGET', family, 'epoch', 'revoked', 'up', 'used', 'budget:credits', 'budget:llm-inference')
  if not row[1] or row[1] ~= epoch or row[2] then return nil end
  return row
end

-- The delegated families above a token, each {id, charges, budgets}, the nearest first; nothing if a token above it is dead.
local function lineage(family, access, up, epoch)
  local chain = {}
  local families, tokens = string.match(family, '^.*:'), string.match(access, '^.*:access:')
  for id, generation in string.gmatch(up, '(%S+):(%d+)') do
    local row = ancestor(families .. id, tokens .. id .. ':' .. generation, epoch)
    if not row then return nil end
    if row[3] then chain[#chain + 1] = {id, row[4], row[5], row[6]} end
  end
  return chain
end
