--- Delete one document an app keeps for a person, by that person.
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
--- ARGV[1] idle: ms
--- ARGV[2] client
--- ARGV[3] document: collection/id
--- ARGV[4] collection
--- ARGV[5] address
--- ARGV[6] agent
--- ARGV[7] member: the person, as the lists of the shard have them
--- ARGV[8] proof: ms
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
local user, session, grant, activity = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local docs, meta, index, usage = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local due, outbox, factors, passkeys = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local idle, client, document, collection = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local address, agent, member, proof = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])

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
