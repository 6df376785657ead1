--- Note how far a piece of operators' work is, in a full store too.
--- KEYS[1] job
--- ARGV[1] state: running or done
--- ARGV[2] done: its steps that are done
--- ARGV[3] report: what came of them, JSON
--- @reply gone
--- @reply ok
--- @idempotent
--- @reserve
--- @include "now"

if redis.call('EXISTS', job) == 0 then return {'gone'} end
redis.call('HSET', job, 'state', state, 'done', done, 'report', report, 'beat', int(now_ms()))
return {'ok'}
