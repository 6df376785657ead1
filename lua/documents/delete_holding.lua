--- Delete one document of an app for the signed-in person.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] activity
--- KEYS[5] docs
--- KEYS[6] meta
--- KEYS[7] index
--- KEYS[8] usage
--- KEYS[9] due
--- KEYS[10] outbox
--- KEYS[11] factors
--- KEYS[12] passkeys
--- ARGV[1] idle (number): ms
--- ARGV[2] client
--- ARGV[3] document: collection/id
--- ARGV[4] collection
--- ARGV[5] address
--- ARGV[6] agent
--- ARGV[7] member: the person in the lists of the shard
--- ARGV[8] proof (number): ms
--- @reply signed_out
--- @reply unproved
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "session"
--- @include "factors"
--- @include "documents"
--- @include "stored"
--- @include "audit"
--- @include "due"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
local found = redis.call('EXISTS', grant) == 1 and read_meta(meta, document)
if not found then return {'not_found'} end
remove_document(docs, meta, index, usage, document, collection, found.size)
forget_stored(user)
record(activity, 'document_deleted', client, address, agent)
told_if_empty(user, due, outbox, index, client, member, now)
return {'ok'}
