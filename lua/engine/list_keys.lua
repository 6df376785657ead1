--- List the ids of the secret keys that the store was written with, including those no longer configured.
--- KEYS[1] keyring
--- @reply ok ids
--- @idempotent

local ids = {}
for _, field in ipairs(redis.call('HKEYS', keyring)) do
  local id = string.match(field, '^check:(%d+)$')
  if id then ids[#ids + 1] = id end
end
return {'ok', ids}
