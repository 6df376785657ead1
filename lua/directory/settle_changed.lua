--- Drop notes on people who are in the index of people now. Keeps the note on a person who changed meanwhile.
--- KEYS[1] changed: notes of `note_change`
--- KEYS[2] relaying: the relay of the shard
--- ARGV[1] people: prefix of a person's keys, up to the member of the list
--- ARGV[2] consumer: the relay
--- ARGV[3] written (json): for each person the member, the note, and the address and name in the index, or empty
--- @reply ok left
--- @derives people
--- @idempotent
--- @reserve

local members, done = {}, {}
for place, one in ipairs(written) do members[place] = one[1] end
local notes = #members > 0 and redis.call('HMGET', changed, unpack(members)) or {}
for place, one in ipairs(written) do
  local member, seen, email, name = unpack(one)
  local says = redis.call('HMGET', people .. member .. ':user', 'status', 'email', 'name')
  local lives = says[1] and says[2]
  local noted = notes[place]
  if email == (lives and says[2] or '') and name == (lives and says[3] or '') then
    if noted == seen then done[#done + 1] = member end
  else
    -- Another relay may have settled a newer change before this one wrote the older text.
    noted = noted or ''
    local line = email == '' and '' or email .. '\t' .. name .. '\n'
    if not string.find('\n' .. noted, '\n' .. line, 1, true) then noted = noted .. line end
    redis.call('HSET', changed, member, noted)
  end
end
if #done > 0 then redis.call('HDEL', changed, unpack(done)) end
local left = redis.call('HLEN', changed)
if left == 0 and redis.call('GET', relaying) == consumer then redis.call('DEL', relaying) end
return {'ok', left}
