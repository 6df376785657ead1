--- Create or replace one document, within the quotas. (SPEC 4.6)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] docs
--- KEYS[7] meta
--- KEYS[8] index
--- KEYS[9] usage
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] name: collection/id
--- ARGV[5] collection
--- ARGV[6] sealed: the encrypted document
--- ARGV[7] size (number): bytes of the document as it was sent
--- ARGV[8] if_match: '', '*' or ETag numbers
--- ARGV[9] if_none: '' or '*'
--- ARGV[10] max_documents (number)
--- ARGV[11] max_collections (number)
--- ARGV[12] max_bytes (number)
--- ARGV[13] usages: prefix of the usage keys, up to the client id
--- ARGV[14] person_documents (number): of all apps, at most
--- ARGV[15] person_bytes (number): the same
--- ARGV[16] full: 'store' or 'owner' if all apps, or those of this app's owner, have no room left; otherwise ''
--- ARGV[17] counted: '1' if the window has counted this request
--- ARGV[18] proof: of the key that the token is bound to, or empty
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply precondition_failed remaining reset
--- @reply quota_exceeded remaining reset what
--- @reply created remaining reset etag created_at updated_at growth
--- @reply replaced remaining reset etag created_at updated_at growth
--- @derives usages proof
--- @include "guard"
--- @include "documents"
--- @include "stored"

local now = now_ms()
local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now, proof, counted ~= '')
if word ~= 'ok' then return {word, a, b} end
local found = read_meta(meta, name)
if not stands(found, if_match, if_none) then return {'precondition_failed', a, b} end

-- A document may always shrink: a pair over its quota must be able to get below it.
local growth = size - (found and found.size or 0)
if growth > 0 and count(usage, 'bytes') + growth > max_bytes then return {'quota_exceeded', a, b, 'bytes'} end
if not found then
  if count(usage, 'documents') >= max_documents then return {'quota_exceeded', a, b, 'documents'} end
  if count(usage, 'n:' .. collection) == 0 and count(usage, 'collections') >= max_collections then
    return {'quota_exceeded', a, b, 'collections'}
  end
end
if full ~= '' and (growth > 0 or not found) then return {'quota_exceeded', a, b, full} end
local documents, bytes, ends = stored_of(user, usages, now)
if growth > 0 and bytes + growth > person_bytes then return {'quota_exceeded', a, b, 'person_bytes'} end
if not found and documents >= person_documents then return {'quota_exceeded', a, b, 'person_documents'} end

local etag = next_etag(usage, now)
local created = found and found.created or int(now)
redis.call('HSET', docs, name, sealed)
redis.call('HSET', meta, name, etag .. ' ' .. int(size) .. ' ' .. created .. ' ' .. int(now))
if not found then redis.call('ZADD', index, '0', name) end
book(usage, collection, found and 0 or 1, growth)
note_stored(user, documents + (found and 0 or 1), bytes + growth, ends)
return {found and 'replaced' or 'created', a, b, etag, created, int(now), int(growth)}
