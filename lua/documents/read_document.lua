--- Read one document. (SPEC 4.6)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] docs
--- KEYS[7] meta
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] name: collection/id
--- ARGV[5] proof: of the key that the token is bound to, or empty
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply not_found remaining reset
--- @reply ok remaining reset etag size created_at updated_at sealed
--- @derives proof
--- @reserve
--- @include "guard"
--- @include "documents"

local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now_ms(), proof)
if word ~= 'ok' then return {word, a, b} end
local found = read_meta(meta, name)
if not found then return {'not_found', a, b} end
return {'ok', a, b, found.etag, found.size, found.created, found.updated, redis.call('HGET', docs, name)}
