--- @include "connected"
--- @include "now"
-- The documents of all apps for a person, including apps in their grace window, are in the person's row as `stored`:
-- 'documents bytes ends'. Writes and deletions by apps update it. From `ends` (ms) on it is counted again: when the first
-- pair's documents end with the grace window, because expiry runs no script, and a day after the last count at the latest.
-- Any other removal of documents drops the field.
local STORED_MS = 86400000

-- Documents, bytes and that end. `usages` is the prefix of the usage keys, up to the client id.
local function stored_of(user, usages, now)
  local documents, bytes, ends = string.match(redis.call('HGET', user, 'stored') or '', '^(%d+) (%d+) (%d+)$')
  documents, bytes, ends = tonumber(documents), tonumber(bytes), tonumber(ends)
  if ends and ends > now and ends <= now + STORED_MS then return documents, bytes, ends end
  documents, bytes, ends = 0, 0, now + STORED_MS
  for _, client in ipairs(apps_of(user)) do
    local row = redis.call('HMGET', usages .. client, 'documents', 'bytes')
    documents, bytes = documents + tonumber(row[1] or '0'), bytes + tonumber(row[2] or '0')
    local left = redis.call('PTTL', usages .. client)
    if left >= 0 then ends = math.min(ends, now + left + 1) end
  end
  return documents, bytes, ends
end

local function note_stored(user, documents, bytes, ends)
  redis.call('HSET', user, 'stored', int(documents) .. ' ' .. int(bytes) .. ' ' .. int(ends))
end

-- Subtracts a removed document of this size.
local function less_stored(user, size)
  local documents, bytes, ends = string.match(redis.call('HGET', user, 'stored') or '', '^(%d+) (%d+) (%d+)$')
  if ends then note_stored(user, math.max(0, documents - 1), math.max(0, bytes - size), ends) end
end

-- Makes the next write count again.
local function forget_stored(user)
  redis.call('HDEL', user, 'stored')
end
