--- Read a person's ways to sign in and live sessions, without a session: for the operator and for exports.
--- KEYS[1] user
--- KEYS[2] sessions
--- KEYS[3] factors
--- KEYS[4] passkeys
--- KEYS[5] recovery
--- KEYS[6] identities
--- ARGV[1] session_prefix: prefix of a session's key, up to the session id
--- @reply not_found
--- @reply ok since rows codes live identities_known
--- @derives session_prefix
--- @idempotent

local epoch = redis.call('HGET', user, 'epoch')
if not epoch then return {'not_found'} end
local live = {}
for _, id in ipairs(redis.call('ZREVRANGE', sessions, 0, 199)) do
  local row = redis.call('HMGET', session_prefix .. id, 'epoch', 'created_at', 'seen_at', 'address', 'agent')
  if row[1] == epoch then live[#live + 1] = {id, row[2], row[3], row[4], row[5]} end
end
return {'ok', redis.call('HGET', factors, 'since') or '0', redis.call('HGETALL', passkeys),
  redis.call('SCARD', recovery), live, redis.call('HGETALL', identities)}
