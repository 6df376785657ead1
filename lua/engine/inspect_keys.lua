--- Run the reads of several looks in one slot at one moment, for a check of the store; changes nothing.
--- KEYS[1] anchor: the key of the first look
--- ARGV[1] tag: the hash tag of the slot
--- ARGV[2] looks (json): for each look its key after the tag, and a list of [command, the key after its tag, argument ...]
--- @reply ok now found
--- @derives tag
--- @idempotent
--- @include "now"

-- Only these commands, whatever a check sends: it must not write, or read more than it declares.
local READS = {EXISTS = 1, TYPE = 1, PTTL = 1, GET = 1, STRLEN = 1, HGET = 1, HMGET = 1, HGETALL = 1, HKEYS = 1, HEXISTS = 1,
  HLEN = 1, HSTRLEN = 1, SCARD = 1, SISMEMBER = 1, SSCAN = 1, ZCARD = 1, ZSCORE = 1, ZRANGE = 1, XLEN = 1, XRANGE = 1,
  XREVRANGE = 1}

assert(string.sub(anchor, 1, #tag) == tag, 'a key of another slot')
local now = int(now_ms())
-- For each look: type and end of its key, and the replies. That of a key of another type is nil, as of a missing one.
local found = {}
for place, look in ipairs(looks) do
  local seen = {}
  for number, read in ipairs(look[2]) do
    assert(READS[read[1]], 'not a command that looks')
    local answer = redis.pcall(read[1], tag .. read[2], unpack(read, 3))
    if type(answer) == 'table' then
      if answer.err then answer = false elseif answer.ok then answer = answer.ok end
    end
    seen[number] = answer
  end
  found[place] = {redis.call('TYPE', tag .. look[1]).ok, redis.call('PEXPIRETIME', tag .. look[1]), seen}
end
return {'ok', now, found}
