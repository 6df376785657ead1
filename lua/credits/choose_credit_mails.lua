--- Keep whether the signed-in person wants mails about limits and a low balance.
--- KEYS[1] user
--- KEYS[2] session
--- ARGV[1] idle (number): ms
--- ARGV[2] wanted: '1', or empty
--- @reply signed_out
--- @reply ok
--- @include "session"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
if wanted == '1' then redis.call('HDEL', user, 'credit_mails') else redis.call('HSET', user, 'credit_mails', 'off') end
return {'ok'}
