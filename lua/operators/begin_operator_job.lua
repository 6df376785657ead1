--- Begin a piece of operators' work, or continue it after the server that did it died.
--- In a full store too: it may suspend and delete people.
--- KEYS[1] job
--- ARGV[1] kind
--- ARGV[2] actor
--- ARGV[3] silence (number): ms without a sign of life after which nobody does it any more
--- ARGV[4] lasts: ms
--- @reply not_found
--- @reply begun
--- @reply ok order done report
--- @reserve
--- @include "now"

local row = redis.call('HMGET', job, 'kind', 'actor', 'state', 'beat', 'order', 'done', 'report')
if row[1] ~= kind or row[2] ~= actor then return {'not_found'} end
local now = now_ms()
if row[3] == 'done' or row[3] == 'running' and tonumber(row[4] or '0') + silence > now then return {'begun'} end
redis.call('HSET', job, 'state', 'running', 'beat', int(now))
redis.call('PEXPIRE', job, lasts)
return {'ok', row[5], row[6], row[7]}
