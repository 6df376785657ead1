--- Keep the turn of the process that exports the security log, if it has it or nobody does, and note how far it has come.
--- KEYS[1] exporter: the process whose turn it is
--- KEYS[2] exported: how far the export has come
--- ARGV[1] process
--- ARGV[2] lease (number): ms that the turn lasts; 0 ends it
--- ARGV[3] position: of a reader that follows the log; empty for no change
--- ARGV[4] at (number): ms, before which all entries have left; 0 for no change
--- @reply ok position at now: the position is empty before the first export
--- @reply busy at now: another process has the turn, or had it since this one noted something
--- @idempotent
--- @reserve
--- @include "now"

local holder, last = redis.call('GET', exporter), redis.call('HMGET', exported, 'at', 'by')
-- A process that was held up until its turn had ended must not set back what the next one has noted, even if that one has
-- stopped: it asks again without a position.
local late = position ~= '' and not holder and last[2] and last[2] ~= process
if late or holder and holder ~= process then return {'busy', last[1] or '0', int(now_ms())} end
if position ~= '' then redis.call('HSET', exported, 'position', position, 'by', process) end
if at > 0 then redis.call('HSET', exported, 'at', int(at)) end
if lease > 0 then
  redis.call('SET', exporter, process, 'PX', int(lease))
else
  redis.call('DEL', exporter)
end
local noted = redis.call('HMGET', exported, 'position', 'at')
return {'ok', noted[1] or '', noted[2] or '0', int(now_ms())}
