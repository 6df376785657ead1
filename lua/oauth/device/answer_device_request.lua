--- Write the decision on a claimed device's authorization request, for the device's next poll. (RFC 8628 3.5)
--- KEYS[1] device
--- ARGV[1] claim
--- ARGV[2] answer: allowed or denied
--- ARGV[3] user: who allowed it, or empty
--- ARGV[4] code: the id of the code in the person's slot, or empty
--- ARGV[5] kept (number): ms that the device has at least to fetch the answer
--- @reply gone
--- @reply allowed
--- @reply denied
--- @reserve
--- @durable
--- @include "now"

-- Whoever took longer than a claim lasts may not overwrite the decision of the next person.
if redis.call('HGET', device, 'claim') ~= claim then return {'gone'} end
redis.call('HDEL', device, 'claim', 'claimed_at', 'params', 'address', 'agent')
redis.call('HSET', device, 'answer', answer)
if user ~= '' then redis.call('HSET', device, 'user', user, 'code', code) end
if redis.call('PTTL', device) < kept then redis.call('PEXPIREAT', device, int(now_ms() + kept)) end
if answer == 'allowed' then return {'allowed'} end
return {'denied'}
