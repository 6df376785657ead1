--- Note people of a shard, so that the relay compares them with the index of people.
--- KEYS[1] users
--- KEYS[2] changed: notes of `note_change`
--- ARGV[1] cursor: of SSCAN
--- ARGV[2] most (number): about how many in one call
--- @reply ok cursor
--- @reserve

local found = redis.call('SSCAN', users, cursor, 'COUNT', most)
for _, member in ipairs(found[2]) do redis.call('HSETNX', changed, member, '') end
return {'ok', found[1]}
