--- Forget a secret key, unless something sealed under it can still live.
--- Tokens expire; documents no longer need a key after a later complete re-encryption under another key.
--- KEYS[1] keyring
--- ARGV[1] id
--- ARGV[2] longest (number): ms that anything sealed can live
--- @reply in_use until
--- @reply documents
--- @reply ok
--- @include "now"

local sealed_at = redis.call('HGET', keyring, 'sealed_at:' .. id)
if sealed_at and tonumber(sealed_at) + longest > now_ms() then return {'in_use', tonumber(sealed_at) + longest} end
if sealed_at then
  local walk = redis.call('HMGET', keyring, 'documents_front', 'documents_since')
  if not walk[1] or walk[1] == id or tonumber(walk[2]) <= tonumber(sealed_at) then return {'documents'} end
end
redis.call('HDEL', keyring, 'check:' .. id, 'sealed_at:' .. id, 'known_at:' .. id)
return {'ok'}
