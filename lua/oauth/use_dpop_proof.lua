--- Count a proof that came to the token endpoint, or take it back. (RFC 9449 11.1)
--- KEYS[1] mark
--- ARGV[1] lasts: ms, longer than the proof can be fresh; empty to take it back
--- @reply ok
--- @reply used

if lasts == '' then
  redis.call('DEL', mark)
elseif not redis.call('SET', mark, '1', 'PX', lasts, 'NX') then
  return {'used'}
end
return {'ok'}
