--- Read a link for its page. This changes nothing, so mail scanners that fetch the page do not use the link up.
--- KEYS[1] user
--- KEYS[2] link
--- KEYS[3] undos
--- ARGV[1] link_id
--- @reply over
--- @reply used email target
--- @reply ok name warned target
--- @idempotent
--- @include "now"
--- @include "link"
--- @include "undo"

local found = live_link(user, link, link_id)
if not found then return {'over'} end
if found.used then return {'used', redis.call('HGET', user, 'email'), found.target} end
return {'ok', redis.call('HGET', user, 'name'), warned_of(user, undos, now_ms()), found.target}
