--- End an attempt at a delivery: delivered, to retry later, or given up.
--- KEYS[1] delivery
--- KEYS[2] due
--- ARGV[1] id
--- ARGV[2] attempt: its number, from the claim
--- ARGV[3] outcome: delivered, retry or failed
--- ARGV[4] status: of the answer, or empty
--- ARGV[5] error: what went wrong, or empty
--- ARGV[6] retry_in (number): ms
--- @reply gone
--- @reply stale
--- @reply ok
--- @reserve
--- @include "now"

local row = redis.call('HMGET', delivery, 'state', 'attempts', 'next_attempt_at')
if not row[1] then return {'gone'} end
-- A late settlement must not change a newer attempt; but a success still counts.
if row[1] ~= 'pending' or (outcome ~= 'delivered' and (row[2] ~= attempt or row[3])) then return {'stale'} end
redis.call('HSET', delivery, 'last_status', status, 'last_error', error)
if outcome == 'retry' then
  local next_attempt = int(now_ms() + retry_in)
  redis.call('HSET', delivery, 'next_attempt_at', next_attempt)
  redis.call('ZADD', due, next_attempt, id)
else
  redis.call('HSET', delivery, 'state', outcome)
  redis.call('HDEL', delivery, 'next_attempt_at')
  redis.call('ZREM', due, id)
end
return {'ok'}
