--- List a page of an app's documents for the signed-in person. (SPEC 4.6)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] docs
--- KEYS[5] meta
--- KEYS[6] index
--- KEYS[7] usage
--- ARGV[1] idle (number): ms
--- ARGV[2] first: the first name of the range
--- ARGV[3] after: the last name of the previous page, or empty
--- ARGV[4] past: the first name after the range
--- ARGV[5] most (number): rows of a page
--- @reply signed_out
--- @reply not_found
--- @reply ok email email_verified name picture preferences data_until fields more rows
--- @idempotent
--- @include "session"
--- @include "documents"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local given = redis.call('HMGET', grant, 'epoch', 'revoked_at')
if not given[1] then return {'not_found'} end
local data_until = given[2] and redis.call('PTTL', grant) + now or 0
local rows, more = rows_of(docs, meta, index, first, after, past, most, 0)
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, data_until, redis.call('HGETALL', usage), more, rows}
