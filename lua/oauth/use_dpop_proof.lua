--- Count a proof that came to the token endpoint. (RFC 9449 11.1)
--- KEYS[1] mark
--- ARGV[1] lasts: ms, longer than the proof can be fresh
--- @reply ok
--- @reply used

if not redis.call('SET', mark, '1', 'PX', lasts, 'NX') then return {'used'} end
return {'ok'}
