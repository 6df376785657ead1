--- Read a page of an app's documents for a person, with their content, for the operator.
--- KEYS[1] docs
--- KEYS[2] meta
--- KEYS[3] index
--- ARGV[1] after: the last name of the previous page, or empty
--- ARGV[2] past: the first name after the range
--- ARGV[3] most (number): rows of a page
--- ARGV[4] max_bytes (number): a page ends with the document that exceeds this
--- @reply ok more rows
--- @idempotent
--- @include "documents"

local rows, more = rows_of(docs, meta, index, '', after, past, most, max_bytes)
return {'ok', more, rows}
