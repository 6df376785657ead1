-- Notes that the index of people may no longer fit this person. Called before the change: the note has what the row says
-- now, in lines of address and name, so that the relay can remove it from the index (store/directory/relay.py).
local function note_change(user, changed, member)
  local was = redis.call('HMGET', user, 'email', 'name')
  local noted = redis.call('HGET', changed, member) or ''
  local line = was[1] and was[1] .. '\t' .. (was[2] or '') .. '\n' or ''
  if not string.find('\n' .. noted, '\n' .. line, 1, true) then noted = noted .. line end
  redis.call('HSET', changed, member, noted)
end

-- The same for a person whose row the script is about to make.
local function note_new(changed, member)
  redis.call('HSETNX', changed, member, '')
end
