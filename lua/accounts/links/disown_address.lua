--- Check an entry of the index against its person's row and the old addresses that a link can bring back.
--- If it matches neither, end a change of address in progress that would make it match.
--- KEYS[1] user
--- KEYS[2] link: to change the address
--- KEYS[3] undos
--- ARGV[1] email
--- @reply owned
--- @reply ok
--- @idempotent
--- @durable
--- @reserve
--- @include "touch"
--- @include "now"
--- @include "undo"

if redis.call('HGET', user, 'email') == email then return {'owned'} end
if kept_until(open_undos(undos, now_ms()), email) > 0 then return {'owned'} end
-- A used link changes nothing any more; it stays, so that its page can say that it was used.
if redis.call('HGET', link, 'used') ~= '1' then redis.call('DEL', link) end
touch(link)
return {'ok'}
