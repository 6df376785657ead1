--- Count an app's documents for some of the people of a shard.
--- KEYS[1] app_users
--- ARGV[1] client
--- ARGV[2] people: prefix of a person's keys, up to the member of the list
--- ARGV[3] cursor: '0' to begin
--- ARGV[4] steps: about as many people
--- @reply ok cursor documents bytes
--- @derives people
--- @idempotent
--- @include "now"

local documents, bytes = 0, 0
local page = redis.call('SSCAN', app_users, cursor, 'COUNT', steps)
for _, member in ipairs(page[2]) do
  local row = redis.call('HMGET', people .. member .. ':usage:' .. client, 'documents', 'bytes')
  documents, bytes = documents + tonumber(row[1] or '0'), bytes + tonumber(row[2] or '0')
end
return {'ok', page[1], int(documents), int(bytes)}
