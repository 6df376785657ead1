--- Keep the reply to an operator's write, in a full store too: the write is done.
--- KEYS[1] operator_reply
--- ARGV[1] value
--- ARGV[2] lasts: ms
--- @reply ok
--- @idempotent
--- @reserve

redis.call('SET', operator_reply, value, 'PX', lasts)
return {'ok'}
