--- Read those of a page of documents that are not sealed under the front key.
--- KEYS[1] docs
--- KEYS[2] index
--- ARGV[1] front (number): id of the front key, which is the first byte of what it sealed
--- ARGV[2] after: the last name of the page before, or empty
--- ARGV[3] past: the first name beyond
--- ARGV[4] most (number): documents looked at
--- ARGV[5] max_bytes (number): the page ends with the document that takes it past this
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
