--- End with events that were moved; an outbox without any goes, with its group.
--- KEYS[1] outbox
--- ARGV[1] entries: their ids in the stream, separated by spaces
--- @reply ok left
--- @idempotent

for entry in string.gmatch(entries, '%S+') do
  redis.call('XACK', outbox, 'relay', entry)
  redis.call('XDEL', outbox, entry)
end
local left = redis.call('XLEN', outbox)
-- What is empty has nothing under way either: an event that somebody still has was moved by somebody else.
if left == 0 then redis.call('DEL', outbox) end
return {'ok', left}
