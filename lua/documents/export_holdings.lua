--- Read a page of what an app keeps for a person, documents included, for that person's download.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] activity
--- KEYS[5] docs
--- KEYS[6] meta
--- KEYS[7] index
--- ARGV[1] idle: ms
--- ARGV[2] client
--- ARGV[3] after: the last name of the page before, or empty
--- ARGV[4] past: the first name beyond
--- ARGV[5] most: rows of a page
--- ARGV[6] max_bytes: a page ends with the document that takes it past this
--- ARGV[7] address
--- ARGV[8] agent
--- @reply signed_out
--- @reply not_found
--- @reply ok more rows
--- @reserve
--- @include "session"
--- @include "documents"
--- @include "audit"
local user, session, grant, activity = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local docs, meta, index = KEYS[5], KEYS[6], KEYS[7]
local idle, client, after, past = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local most, max_bytes, address, agent = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
if redis.call('EXISTS', grant) == 0 then return {'not_found'} end
if after == '' then record(activity, 'documents_downloaded', client, address, agent) end
local rows, more = rows_of(docs, meta, index, '', after, past, most, max_bytes)
return {'ok', more, rows}
