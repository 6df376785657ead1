--- Read one document of an app for the signed-in person. (SPEC 4.6)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] docs
--- KEYS[5] meta
--- ARGV[1] idle (number): ms
--- ARGV[2] document: collection/id
--- @reply signed_out
--- @reply not_found
--- @reply ok email email_verified name picture preferences etag size created_at updated_at sealed
--- @idempotent
--- @include "session"
--- @include "documents"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local found = redis.call('EXISTS', grant) == 1 and read_meta(meta, document)
if not found then return {'not_found'} end
local sealed = redis.call('HGET', docs, document)
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, found.etag, found.size, found.created, found.updated, sealed}
