--- Read a page of an app's documents for a person, with their content, for that person's download.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] activity
--- KEYS[5] docs
--- KEYS[6] meta
--- KEYS[7] index
--- ARGV[1] idle (number): ms
--- ARGV[2] client
--- ARGV[3] after: the last name of the previous page, or empty
--- ARGV[4] past: the first name after the range
--- ARGV[5] most (number): rows of a page
--- ARGV[6] max_bytes (number): a page ends with the document that exceeds this
--- ARGV[7] address
--- ARGV[8] agent
--- @reply signed_out
--- @reply not_found
--- @reply ok more rows
--- @reserve
--- @include "session"
--- @include "documents"
--- @include "audit"

if not live_session(user, session, idle, now_ms()) then return {'signed_out'} end
if redis.call('EXISTS', grant) == 0 then return {'not_found'} end
if after == '' then record(activity, 'documents_downloaded', client, address, agent) end
local rows, more = rows_of(docs, meta, index, '', after, past, most, max_bytes)
return {'ok', more, rows}
