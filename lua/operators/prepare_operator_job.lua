--- Keep a piece of operators' work that a later call may begin.
--- In a full store too: it may suspend and delete people.
--- KEYS[1] job
--- ARGV[1] lasts: ms
--- ARGV[2] kind
--- ARGV[3] actor: who may begin it
--- ARGV[4] order: what to do, JSON
--- ARGV[5] total: its steps
--- ARGV[6] silence (number): ms without a sign of life after which nobody does it any more
--- @reply running
--- @reply ok
--- @idempotent
--- @reserve
--- @include "now"

local row = redis.call('HMGET', job, 'state', 'beat')
if row[1] == 'running' and tonumber(row[2] or '0') + silence > now_ms() then return {'running'} end
redis.call('HSET', job, 'kind', kind, 'actor', actor, 'order', order, 'total', total, 'done', '0', 'state', 'ready',
  'report', '{}', 'beat', '0')
redis.call('PEXPIRE', job, lasts)
return {'ok'}
