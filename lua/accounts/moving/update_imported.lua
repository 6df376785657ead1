--- Change the name of a person whom an import names, and add identities at other servers, and nothing else.
--- The reservations of the identities name the person already.
--- KEYS[1] user
--- KEYS[2] identities
--- KEYS[3] audit
--- KEYS[4] changed
--- ARGV[1] email
--- ARGV[2] name
--- ARGV[3] added (json): the name and the text of each identity
--- ARGV[4] most (number): identities of one person
--- ARGV[5] member: the person in the lists of the shard
--- @reply not_found
--- @reply full
--- @reply ok
--- @idempotent
--- @durable
--- @include "audit"
--- @include "touch"
--- @include "changed"

local row = redis.call('HMGET', user, 'email', 'name')
if row[1] ~= email then return {'not_found'} end
local fresh = {}
for place = 1, #added, 2 do
  if redis.call('HEXISTS', identities, added[place]) == 0 then
    fresh[#fresh + 1] = added[place]
    fresh[#fresh + 1] = added[place + 1]
  end
end
if #fresh > 0 and redis.call('HLEN', identities) + #fresh / 2 > most then return {'full'} end
if row[2] ~= name then
  note_change(user, changed, member)
  redis.call('HSET', user, 'name', name)
end
if #fresh > 0 then redis.call('HSET', identities, unpack(fresh)) end
if row[2] ~= name or #fresh > 0 then
  record(audit, 'profile_changed_by_operator', '', '', '')
else
  touch(user)
end
return {'ok'}
