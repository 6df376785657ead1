--- Read the picture of a person, if it still has the requested id.
--- KEYS[1] user
--- KEYS[2] picture
--- ARGV[1] picture_id: '' for the generated one of a person without a picture
--- @reply not_found
--- @reply ok name image
--- @idempotent

local row = redis.call('HMGET', user, 'status', 'name', 'picture')
if row[1] ~= 'active' or (row[3] or '') ~= picture_id then return {'not_found'} end
local image = picture_id ~= '' and redis.call('GET', picture) or ''
return {'ok', row[2], image}
