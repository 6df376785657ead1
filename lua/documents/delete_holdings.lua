--- Delete all documents of an app for the signed-in person, in bounded steps; usage is right after each step.
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
--- ARGV[3] steps (number): documents deleted by one call
--- ARGV[4] begun: '1' after the first step, because only that one is noted; or empty
--- ARGV[5] address
--- ARGV[6] agent
--- ARGV[7] member: the person in the lists of the shard
--- ARGV[8] proof (number): ms
--- @reply signed_out
--- @reply unproved
--- @reply not_found
--- @reply more deleted
--- @reply done deleted
--- @durable
--- @reserve
--- @include "session"
--- @include "factors"
--- @include "documents"
--- @include "stored"
--- @include "audit"
--- @include "due"
--- @include "touch"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
-- A deletion that has begun continues, even if the re-authentication expires meanwhile.
if begun == '' and not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if redis.call('EXISTS', grant) == 0 then return {'not_found'} end
local names = redis.call('ZRANGE', index, 0, steps - 1)
if #names > 0 and begun == '' then record(activity, 'documents_deleted', client, address, agent) end

-- The names are in order, so each collection is one run of names, and its usage changes once.
local collection, documents, bytes = nil, 0, 0
for _, document in ipairs(names) do
  local its = string.match(document, '^[^/]+')
  if collection and its ~= collection then
    book(usage, collection, -documents, -bytes)
    documents, bytes = 0, 0
  end
  collection, documents, bytes = its, documents + 1, bytes + read_meta(meta, document).size
end
if collection then
  book(usage, collection, -documents, -bytes)
  forget_stored(user)
  redis.call('HDEL', docs, unpack(names))
  redis.call('HDEL', meta, unpack(names))
  redis.call('ZREM', index, unpack(names))
  told_if_empty(user, due, outbox, index, client, member, now)
else
  touch(usage)
end
return {redis.call('EXISTS', index) == 1 and 'more' or 'done', #names}
