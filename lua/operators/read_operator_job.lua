--- Read how far a piece of operators' work is.
--- KEYS[1] job
--- @reply not_found
--- @reply ok kind actor order total done state report beat now
--- @idempotent
--- @include "now"

local row = redis.call('HMGET', job, 'kind', 'actor', 'order', 'total', 'done', 'state', 'report', 'beat')
if not row[1] then return {'not_found'} end
return {'ok', row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8] or '0', int(now_ms())}
