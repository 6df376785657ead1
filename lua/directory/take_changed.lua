--- Take people of a shard whom the index of people may no longer fit, with what their rows say now.
--- The relay that takes them is the only one of the shard until it has finished.
--- KEYS[1] changed: notes of `note_change`
--- KEYS[2] relaying: the relay of the shard
--- ARGV[1] people: prefix of a person's keys, up to the member of the list
--- ARGV[2] consumer: the relay
--- ARGV[3] idle (number): ms after which a relay counts as dead
--- ARGV[4] most (number)
--- @reply busy
--- @reply ok taken
--- @derives people
--- @reserve

if redis.call('EXISTS', changed) == 0 then return {'ok', {}} end
if not redis.call('SET', relaying, consumer, 'NX', 'PX', idle) and redis.call('GET', relaying) ~= consumer then
  return {'busy'}
end
redis.call('PEXPIRE', relaying, idle)
local taken = {}
local found = redis.call('HRANDFIELD', changed, most, 'WITHVALUES')
for place = 1, #found, 2 do
  local row = people .. found[place] .. ':user'
  local says = redis.call('HMGET', row, 'status', 'email', 'name')
  -- Without a status the person is being deleted.
  local lives = says[1] and says[2]
  taken[#taken + 1] = {found[place], found[place + 1], lives and says[2] or '', lives and says[3] or ''}
end
return {'ok', taken}
