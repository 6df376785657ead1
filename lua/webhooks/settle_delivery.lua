--- End an attempt at a delivery: delivered, to retry later, or given up. Record the attempt.
--- KEYS[1] delivery
--- KEYS[2] due
--- KEYS[3] failing: endpoints whose last attempt failed
--- ARGV[1] id
--- ARGV[2] attempt: its number, from the claim
--- ARGV[3] outcome: delivered, retry or failed
--- ARGV[4] status: of the answer, or empty
--- ARGV[5] error: what went wrong, or empty
--- ARGV[6] retry_in (number): ms
--- ARGV[7] apps: prefix of an app's list, up to the client id
--- ARGV[8] most (number): attempts that are kept for an app; 0 to record nothing
--- ARGV[9] keep (number): ms that an attempt is kept
--- ARGV[10] url: that was posted to, or empty
--- ARGV[11] sent: the headers of the request, JSON
--- ARGV[12] body: of the request
--- ARGV[13] received: the headers of the answer, JSON, or empty
--- ARGV[14] answer: the beginning of its body
--- ARGV[15] took (number): ms
--- @reply gone
--- @reply stale
--- @reply ok
--- @derives apps
--- @reserve
--- @include "now"

local row = redis.call('HMGET', delivery, 'state', 'attempts', 'next_attempt_at', 'client', 'type')
if not row[1] then return {'gone'} end
-- A late settlement must not change a newer attempt; but a success still counts.
if row[1] ~= 'pending' or (outcome ~= 'delivered' and (row[2] ~= attempt or row[3])) then return {'stale'} end
local now = now_ms()
redis.call('HSET', delivery, 'last_status', status, 'last_error', error)
if outcome == 'retry' then
  local next_attempt = int(now + retry_in)
  redis.call('HSET', delivery, 'next_attempt_at', next_attempt)
  redis.call('ZADD', due, next_attempt, id)
else
  redis.call('HSET', delivery, 'state', outcome)
  redis.call('HDEL', delivery, 'next_attempt_at')
  redis.call('ZREM', due, id)
end
if row[4] then
  -- Since when this endpoint of the app has failed.
  local endpoint = row[4] .. (row[5] == 'session.ended' and ' logout' or ' events')
  if outcome == 'delivered' then
    redis.call('ZREM', failing, endpoint)
  else
    redis.call('ZADD', failing, 'NX', int(now), endpoint)
  end
end
if row[4] and most > 0 then
  local attempts = apps .. row[4] .. ':attempts'
  -- Anything else at the key must not keep a delivery from being settled.
  if redis.call('TYPE', attempts).ok ~= 'stream' then redis.call('DEL', attempts) end
  redis.call('XADD', attempts, 'MAXLEN', int(most), '*', 'delivery', id, 'attempt', attempt, 'at', int(now - took),
    'url', url, 'sent', sent, 'body', body, 'status', status, 'received', received, 'answer', answer, 'took', int(took),
    'error', error)
  redis.call('XTRIM', attempts, 'MINID', int(now - keep))
  redis.call('PEXPIRE', attempts, int(keep))
end
return {'ok'}
