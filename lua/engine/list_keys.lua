--- List the ids of the secret keys that the store was written with, including those no longer configured.
--- KEYS[1] keyring
--- @reply ok ids sealed since
--- @idempotent

local ids, sealed, since = {}, {}, {}
for _, field in ipairs(redis.call('HKEYS', keyring)) do
  local id = string.match(field, '^check:(%d+)$')
  if id then
    ids[#ids + 1] = id
    -- When it sealed last, as far as servers have noted it.
    sealed[#sealed + 1] = redis.call('HGET', keyring, 'sealed_at:' .. id) or ''
    -- When a server first had it.
    since[#since + 1] = redis.call('HGET', keyring, 'known_at:' .. id) or ''
  end
end
return {'ok', ids, sealed, since}
