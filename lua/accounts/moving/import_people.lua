--- Write people who move in, all of one shard; the reservations of their addresses and identities name their ids already.
--- A person who is there is left alone: the import was interrupted after this script.
--- KEYS[1] users
--- KEYS[2] changed
--- ARGV[1] prefix: prefix of a person's keys, up to the member in the lists of the shard
--- ARGV[2] people (json): for each the member, email, verified (1 or 0), name, created_at (ms, or empty for now), status, groups (one in each line, or empty), identities (the name and the text of each), the lengths of the password hash and of the sealed secret of an authenticator app, the id of an outside directory (or empty)
--- ARGV[3] secrets: these hashes and sealed secrets, one after the other
--- @reply ok written
--- @derives prefix
--- @idempotent
--- @durable
--- @include "now"
--- @include "touch"
--- @include "changed"

local function add(row, field, value)
  row[#row + 1], row[#row + 2] = field, value
end

local now, at, fresh = int(now_ms()), 1, {}
for _, one in ipairs(people) do
  local member, email, verified, name, created_at, status, groups, identities, length, sealed, external_id = unpack(one)
  local own = prefix .. member .. ':'
  local user = own .. 'user'
  local password, secret = string.sub(secrets, at, at + length - 1), string.sub(secrets, at + length, at + length + sealed - 1)
  at = at + length + sealed
  if redis.call('EXISTS', user, own .. 'leaving') == 0 then
    note_new(changed, member)
    -- The fields that every call reads come first, because a small hash is searched from its beginning.
    local row = {'status', status, 'epoch', '1', 'email', email, 'name', name, 'password', password,
      'created_at', created_at ~= '' and created_at or now}
    if verified == 1 then add(row, 'verified', '1') end
    if groups ~= '' then add(row, 'groups', groups) end
    if external_id ~= '' then add(row, 'external_id', external_id) end
    redis.call('HSET', user, unpack(row))
    if #identities > 0 then redis.call('HSET', own .. 'identities', unpack(identities)) end
    if sealed > 0 then redis.call('HSET', own .. 'factors', 'secret', secret, 'step', '0', 'since', now) end
    -- The first line of the trail, in the form of lua/include/audit.lua.
    redis.call('SET', own .. 'audit', now .. ' imported   \n')
    fresh[#fresh + 1] = member
  end
end
if #fresh > 0 then redis.call('SADD', users, unpack(fresh)) else touch(prefix .. people[1][1] .. ':user') end
return {'ok', #fresh}
