--- Note in a session that its person signed in at another server a moment ago, instead of entering a password.
--- For a person who has no password. With an authenticator app, a code must follow (prove_with_code.lua).
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] new_session: the session's key from now on
--- KEYS[4] sessions
--- KEYS[5] identities
--- KEYS[6] factors
--- KEYS[7] passkeys
--- ARGV[1] name: of the index entry
--- ARGV[2] text: issuer and subject
--- ARGV[3] session_id
--- ARGV[4] new_id
--- ARGV[5] idle (number): ms
--- @reply signed_out
--- @reply refused
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "factors"
--- @include "identity"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if has_password(user) or redis.call('EXISTS', passkeys) == 1 then return {'refused'} end
if read_identity(redis.call('HGET', identities, name)) ~= text then return {'refused'} end
redis.call('HSET', session, has_factor(factors, passkeys) and 'elsewhere_at' or 'proved_at', int(now))
move_session(session, sessions, session_id, new_session, new_id)
return {'ok'}
