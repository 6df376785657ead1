-- Whether something sealed under a secret key can still live: tokens expire, and documents no longer need a key
-- after a later complete re-encryption under another key.
-- `longest`: ms that anything sealed can live. Returns false, or 'in_use' and until when (epoch ms), or 'documents'.
local function needed_key(keyring, id, longest, now)
  local sealed_at = tonumber(redis.call('HGET', keyring, 'sealed_at:' .. id) or nil)
  if not sealed_at then return false end
  if sealed_at + longest > now then return 'in_use', sealed_at + longest end
  local walk = redis.call('HMGET', keyring, 'documents_front', 'documents_since')
  if not walk[1] or walk[1] == id or tonumber(walk[2]) <= sealed_at then return 'documents' end
  return false
end
