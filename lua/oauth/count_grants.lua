--- Count the apps a person has connected, and the documents that all apps keep. (SPEC 3.1)
--- KEYS[1] user
--- KEYS[2] session
--- ARGV[1] grant_prefix: prefix of a grant's key, up to the client id
--- ARGV[2] usage_prefix: prefix of the app's usage key, up to the client id
--- ARGV[3] idle (number): ms
--- @reply signed_out
--- @reply ok email email_verified name picture preferences apps documents
--- @derives grant_prefix usage_prefix
--- @include "connected"
--- @include "session"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
local apps, documents = 0, 0
for _, client in ipairs(apps_of(user)) do
  local row = redis.call('HMGET', grant_prefix .. client, 'scope', 'revoked_at')
  if row[1] then
    if not row[2] then apps = apps + 1 end
    documents = documents + tonumber(redis.call('HGET', usage_prefix .. client, 'documents') or '0')
  end
end
local email, verified, name, picture, preferences = profile(user)
return {'ok', email, verified, name, picture, preferences, int(apps), int(documents)}
