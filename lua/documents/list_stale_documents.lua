--- Read the documents of a page that are not sealed under the front key.
--- KEYS[1] docs
--- KEYS[2] index
--- ARGV[1] front (number): id of the front key: the first byte of what it sealed
--- ARGV[2] after: the last name of the previous page, or empty
--- ARGV[3] past: the first name after the range
--- ARGV[4] most (number): documents to read
--- ARGV[5] max_bytes (number): the page ends with the document that exceeds this
--- @reply ok more last seen rows
--- @idempotent
--- @include "documents"

local names = page_of(index, '', after, past, most)
local rows, seen, bytes = {}, 0, 0
while seen < math.min(#names, most) and bytes <= max_bytes do
  seen = seen + 1
  local sealed = redis.call('HGET', docs, names[seen])
  if string.byte(sealed) ~= front then rows[#rows + 1] = {names[seen], sealed} end
  bytes = bytes + #sealed
end
return {'ok', seen < #names and 1 or 0, names[seen] or '', seen, rows}
