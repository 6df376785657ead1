--- Hold an entry of the index of addresses against the row of its person; a change that would bear it out is over.
--- KEYS[1] user
--- KEYS[2] link: to change the address
--- ARGV[1] email
--- @reply owned
--- @reply ok
--- @idempotent
--- @durable
--- @include "touch"
local user, link = KEYS[1], KEYS[2]
local email = ARGV[1]

if redis.call('HGET', user, 'email') == email then return {'owned'} end
-- A used link changes nothing any more, and says so to who clicks again.
if redis.call('HGET', link, 'used') ~= '1' then redis.call('DEL', link) end
touch(link)
return {'ok'}
