--- Read a page of what an app keeps for a person, documents included, for the operator.
--- KEYS[1] docs
--- KEYS[2] meta
--- KEYS[3] index
--- ARGV[1] after: the last name of the page before, or empty
--- ARGV[2] past: the first name beyond
--- ARGV[3] most: rows of a page
--- ARGV[4] max_bytes: a page ends with the document that takes it past this
--- @reply ok more rows
--- @idempotent
--- @include "documents"
local docs, meta, index = KEYS[1], KEYS[2], KEYS[3]
local after, past, most, max_bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local rows, more = rows_of(docs, meta, index, '', after, past, most, max_bytes)
return {'ok', more, rows}
