--- Read a (person, app) pair and a page of its documents at one moment; changes nothing.
--- KEYS[1] user
--- KEYS[2] leaving
--- KEYS[3] grant
--- KEYS[4] app_users
--- KEYS[5] docs
--- KEYS[6] meta
--- KEYS[7] index
--- KEYS[8] usage
--- ARGV[1] member: the person in the lists of the shard
--- ARGV[2] client
--- ARGV[3] after: the last name of the previous page, or empty
--- ARGV[4] past: the first name after the range
--- ARGV[5] most (number): names of a page
--- @reply wrong_type
--- @reply ok now lefts given person counts fields more rows
--- @idempotent
--- @include "connected"
--- @include "documents"

for _, key in ipairs({user, grant, docs, meta, usage}) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= 'hash' then return {'wrong_type'} end
end
local sorted, listed = redis.call('TYPE', index).ok, redis.call('TYPE', app_users).ok
if (sorted ~= 'none' and sorted ~= 'zset') or (listed ~= 'none' and listed ~= 'set') then return {'wrong_type'} end

local lefts = {}
for _, key in ipairs({grant, docs, meta, index, usage}) do lefts[#lefts + 1] = redis.call('PTTL', key) end
local person = {redis.call('EXISTS', user), redis.call('EXISTS', leaving),
  redis.call('HEXISTS', user, app_field(client)), redis.call('SISMEMBER', app_users, member)}
local counts = {redis.call('HLEN', docs), redis.call('HLEN', meta), redis.call('ZCARD', index)}
-- For each name: the metadata, the bytes of the sealed document, and the score in the index.
local rows = {}
local names = page_of(index, '', after, past, most)
for position = 1, math.min(#names, most) do
  local name = names[position]
  rows[position] = {name, redis.call('HGET', meta, name) or '', redis.call('HSTRLEN', docs, name),
    redis.call('ZSCORE', index, name)}
end
return {'ok', int(now_ms()), lefts, redis.call('HGETALL', grant), person, counts, redis.call('HGETALL', usage),
  #names > most and 1 or 0, rows}
