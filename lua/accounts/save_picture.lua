--- Replace or remove the picture of the signed-in person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] picture
--- KEYS[4] activity
--- ARGV[1] picture_id: new with each picture, or '' for none
--- ARGV[2] image: the encoded picture, or ''
--- ARGV[3] idle (number): ms
--- ARGV[4] address
--- ARGV[5] agent
--- @reply signed_out
--- @reply ok
--- @include "session"
--- @include "audit"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
if picture_id == '' then
  if redis.call('DEL', picture) == 0 then return {'ok'} end
  redis.call('HDEL', user, 'picture')
  record(activity, 'picture_removed', '', address, agent)
else
  redis.call('SET', picture, image)
  redis.call('HSET', user, 'picture', picture_id)
  record(activity, 'picture_changed', '', address, agent)
end
return {'ok'}
