--- Publish a new signing key, unless its algorithm has other live keys than the caller knows.
--- Of processes that race, one adds its key, and the others take it.
--- KEYS[1] signing
--- ARGV[1] kid
--- ARGV[2] algorithm
--- ARGV[3] public: the key as JSON
--- ARGV[4] private: sealed
--- ARGV[5] live: names of the algorithm's keys with a private half, sorted, separated by spaces
--- ARGV[6] delay (number): ms until it signs
--- ARGV[7] channel: of announcements
--- ARGV[8] announced: the word for signing keys
--- @reply changed
--- @reply ok first_use
--- @idempotent
--- @durable
--- @reserve
--- @include "now"

local found = {}
for _, field in ipairs(redis.call('HKEYS', signing)) do
  local one = string.match(field, '^(.+):private$')
  local state = one and redis.call('HGET', signing, one .. ':state')
  if state and string.match(state, '^%S+') == algorithm then found[#found + 1] = one end
end
table.sort(found)
if table.concat(found, ' ') ~= live then return {'changed'} end
local now = now_ms()
local first_use = now + delay
redis.call('HSET', signing, kid .. ':state', algorithm .. ' ' .. int(now) .. ' ' .. int(first_use) .. ' 0',
  kid .. ':public', public, kid .. ':private', private)
redis.call('PUBLISH', channel, announced)
return {'ok', int(first_use)}
