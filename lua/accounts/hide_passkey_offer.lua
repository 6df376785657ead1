--- Keep that the signed-in person wants no offer of a passkey on the account page.
--- KEYS[1] user
--- KEYS[2] session
--- ARGV[1] idle (number): ms
--- @reply signed_out
--- @reply ok
--- @include "session"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
redis.call('HSET', user, 'passkey_offer', 'hidden')
return {'ok'}
