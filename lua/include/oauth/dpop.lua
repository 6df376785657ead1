-- Tokens that are bound to a DPoP key (RFC 9449). A key is named by its thumbprint, which is empty for no key.

-- The row of an access token that is bound to `jkt`, made from the row of an unbound one: `*` and the thumbprint stand before it.
local function bound_row(row, jkt)
  if jkt == '' then return row end
  return '*' .. jkt .. (row ~= '1' and ' ' .. row or '')
end

-- The thumbprint in the row of an access token, and the row that an unbound one would have.
local function parts_of_row(row)
  local jkt, rest = string.match(row, '^%*(%S+) ?(.*)$')
  if not jkt then return '', row end
  return jkt, rest ~= '' and rest or '1'
end

-- The thumbprint in the field `jkt` of a family, and the first generation whose refresh token is bound to it; nothing for an
-- unbound family. The field has the generation only if the family began unbound.
local function family_key(field)
  if not field then return nil end
  local jkt, since = string.match(field, '^(%S+) ?(%d*)$')
  return jkt, tonumber(since) or 0
end
