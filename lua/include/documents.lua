--- @include "now"
-- The hosted documents of a (user, app) pair. Four keys: `docs` and `meta` (hashes by `collection/id`), `index` (the
-- same names in lexical order) and `usage` (documents, bytes, collections, the ETag sequence, and per collection
-- `n:<name>` documents and `b:<name>` bytes). Every function keeps them in step; usage always equals a recount.

-- The metadata of a document: its ETag's number, size in bytes, created and updated in epoch ms. Nil if there is none.
local function read_meta(meta, name)
  local row = redis.call('HGET', meta, name)
  if not row then return nil end
  local etag, size, created, updated = string.match(row, '^(%d+) (%d+) (%d+) (%d+)$')
  return {etag = etag, size = tonumber(size), created = created, updated = updated}
end

-- RFC 9110 13.1: whether the document meets the caller's conditions. `if_match`: '' (no condition), '*' (any) or ETag
-- numbers separated by spaces; `if_none`: '*' or ''.
local function stands(found, if_match, if_none)
  if if_none == '*' and found then return false end
  if if_match == '' then return true end
  if not found then return false end
  return if_match == '*' or string.find(' ' .. if_match .. ' ', ' ' .. found.etag .. ' ', 1, true) ~= nil
end

local function count(usage, field)
  return tonumber(redis.call('HGET', usage, field) or '0')
end

-- Adds a change to the usage: `documents` is 1, 0 or -1, `bytes` the difference.
local function book(usage, collection, documents, bytes)
  redis.call('HINCRBY', usage, 'documents', documents)
  redis.call('HINCRBY', usage, 'bytes', int(bytes))
  local left = redis.call('HINCRBY', usage, 'n:' .. collection, documents)
  redis.call('HINCRBY', usage, 'b:' .. collection, int(bytes))
  if documents == 1 and left == 1 then redis.call('HINCRBY', usage, 'collections', 1) end
  if left == 0 then
    redis.call('HDEL', usage, 'n:' .. collection, 'b:' .. collection)
    redis.call('HINCRBY', usage, 'collections', -1)
  end
end

-- The next ETag: greater than all earlier ones, and at least the time in ms. So ETags also rise after expiry has removed
-- the data, and a store that lost its last writes (a replica took over, a backup was restored) repeats none of them.
local function next_etag(usage, now)
  local etag = int(math.max(count(usage, 'sequence') + 1, now))
  redis.call('HSET', usage, 'sequence', etag)
  return etag
end

local function remove_document(docs, meta, index, usage, name, collection, size)
  redis.call('HDEL', docs, name)
  redis.call('HDEL', meta, name)
  redis.call('ZREM', index, name)
  book(usage, collection, -1, -size)
end

-- A page of names: after `after` (or from `first` on) and before `past`, at most `most` and one more.
local function page_of(index, first, after, past, most)
  local from = after ~= '' and '(' .. after or '[' .. first
  return redis.call('ZRANGE', index, from, '(' .. past, 'BYLEX', 'LIMIT', '0', int(most + 1))
end

-- That page with name, ETag, size, created, updated and the sealed document. With `max_bytes` 0 the document is '';
-- otherwise the page ends with the document that exceeds `max_bytes`. Returns the rows, and 1 if others follow, else 0.
local function rows_of(docs, meta, index, first, after, past, most, max_bytes)
  local names = page_of(index, first, after, past, most)
  local rows, bytes = {}, 0
  for position = 1, math.min(#names, most) do
    local name = names[position]
    local found = read_meta(meta, name)
    local sealed = max_bytes > 0 and redis.call('HGET', docs, name) or ''
    rows[position] = {name, found.etag, found.size, found.created, found.updated, sealed}
    bytes = bytes + found.size
    if max_bytes > 0 and bytes > max_bytes then break end
  end
  return rows, #rows < #names and 1 or 0
end
