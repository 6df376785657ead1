--- Drop moved events; an empty outbox goes, with its consumer group.
--- KEYS[1] outbox
--- ARGV[1] entries: their ids in the stream, separated by spaces
--- @reply ok left
--- @idempotent

for entry in string.gmatch(entries, '%S+') do
  redis.call('XACK', outbox, 'relay', entry)
  redis.call('XDEL', outbox, entry)
end
local left = redis.call('XLEN', outbox)
-- An empty outbox has no event in progress: if a relay still has one, another relay has moved it.
if left == 0 then redis.call('DEL', outbox) end
return {'ok', left}
