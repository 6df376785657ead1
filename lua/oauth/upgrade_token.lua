--- Move a code, a family or an access token from its key of layout 1, with the client id, to that of layout 2.
--- KEYS[1] before
--- KEYS[2] after
--- ARGV[1] noun: code, family or access
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
--- @include "touch"

-- The key may have expired since it was found.
if redis.call('EXISTS', before) == 1 then
  if redis.call('RENAMENX', before, after) == 0 then redis.call('DEL', before) end
  if noun == 'family' then redis.call('HDEL', after, 'rotated_at') end
  if noun == 'access' and redis.call('GET', after) == '' then redis.call('SET', after, '1', 'KEEPTTL') end
else
  touch(before)
end
return {'ok'}
