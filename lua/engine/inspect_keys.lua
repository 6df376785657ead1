--- Look at several things of one slot at one moment, for a check of the store; nothing is changed.
--- KEYS[1] anchor: the key that is being judged
--- ARGV[1] tag: what every key of the slot begins with
--- ARGV[2] reads (json): a list of [command, what stands behind the tag in the key, argument ...]
--- @reply ok now kind left seen
--- @derives tag
--- @idempotent
--- @include "now"

-- Whatever a check is made of, it writes nothing and looks at no more than it says.
local READS = {}
for name in string.gmatch('EXISTS TYPE PTTL GET STRLEN HGET HMGET HGETALL HKEYS HEXISTS HLEN HSTRLEN SCARD SISMEMBER '
  .. 'SSCAN ZCARD ZSCORE ZRANGE XLEN XRANGE XREVRANGE', '%u+') do READS[name] = true end

-- Each answer is 1 and what was answered, or 0 for a key of another type.
local seen = {}
for place, read in ipairs(reads) do
  assert(READS[read[1]], 'not a command that looks')
  local answer = redis.pcall(read[1], tag .. read[2], unpack(read, 3))
  local told = type(answer) == 'table' and (answer.err or answer.ok)
  if not told then
    seen[place] = {1, answer}
  else
    seen[place] = answer.ok and {1, told} or {0, ''}
  end
end
return {'ok', int(now_ms()), redis.call('TYPE', anchor).ok, redis.call('PTTL', anchor), seen}
