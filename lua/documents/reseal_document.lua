--- Replace a document with a new encryption of it, unless the document was written meanwhile.
--- ETag, times, usage and expiry stay unchanged. A call whose answer was lost may be repeated: nothing is written twice.
--- KEYS[1] docs
--- ARGV[1] document: collection/id
--- ARGV[2] expected: the encrypted document that was read
--- ARGV[3] sealed: the same document under the front key
--- @reply changed
--- @reply ok
--- @idempotent
--- @durable
--- @reserve

if redis.call('HGET', docs, document) ~= expected then return {'changed'} end
redis.call('HSET', docs, document, sealed)
return {'ok'}
