--- Run several reads in one slot at one moment, for a check of the store; changes nothing.
--- KEYS[1] anchor: the key to check
--- ARGV[1] tag: the hash tag of the slot
--- ARGV[2] reads (json): a list of [command, the key after its tag, argument ...]
--- @reply ok now kind left expires seen
--- @derives tag
--- @idempotent
--- @include "now"

-- Only these commands, whatever a check sends: it must not write, or read more than it declares.
local READS = {}
for name in string.gmatch('EXISTS TYPE PTTL GET STRLEN HGET HMGET HGETALL HKEYS HEXISTS HLEN HSTRLEN SCARD SISMEMBER '
  .. 'SSCAN ZCARD ZSCORE ZRANGE XLEN XRANGE XREVRANGE', '%u+') do READS[name] = true end

-- Each answer is 1 and the reply, or 0 for a key of another type.
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
return {
  'ok', int(now_ms()), redis.call('TYPE', anchor).ok, redis.call('PTTL', anchor), redis.call('PEXPIRETIME', anchor), seen
}
