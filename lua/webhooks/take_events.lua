--- Take events of a shard to move: first those that a relay took and did not move, then new ones.
--- KEYS[1] outbox
--- ARGV[1] consumer: the relay
--- ARGV[2] most (number)
--- ARGV[3] idle: ms after which a relay with an unfinished event counts as dead
--- @reply ok events
--- @reserve

if redis.call('EXISTS', outbox) == 0 then return {'ok', {}} end
-- Fails if the group exists already.
redis.pcall('XGROUP', 'CREATE', outbox, 'relay', '0')
local events = redis.call('XAUTOCLAIM', outbox, 'relay', consumer, idle, '0-0', 'COUNT', most)[2]
if #events < most then
  local read = redis.call('XREADGROUP', 'GROUP', 'relay', consumer, 'COUNT', most - #events, 'STREAMS', outbox, '>')
  for _, event in ipairs(read and read[1] and read[1][2] or {}) do events[#events + 1] = event end
end
return {'ok', events}
