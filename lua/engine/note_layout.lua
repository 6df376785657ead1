--- Note the layout of the store, unless it has a later one already.
--- KEYS[1] keyring
--- ARGV[1] layout
--- @reply ok
--- @idempotent
--- @durable
--- @reserve

if tonumber(redis.call('HGET', keyring, 'layout') or '0') <= tonumber(layout) then
  redis.call('HSET', keyring, 'layout', layout)
end
return {'ok'}
