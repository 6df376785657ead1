--- @include "connected"
--- @include "due"
--- @include "families"
-- Whether a person's row has room for one more app, of `most`. Apps in their grace window take a place too, because every
-- reader of the row reads them. If no place is free, apps without a grant give up theirs first. Next are disconnected apps
-- without documents, in the order of their disconnection: nothing promised is left of them. `prefix` is the prefix of the
-- person's keys, up to the noun; `shard` is the prefix of the shard's keys, up to 'app:'.
local function has_place(user, due, outbox, member, prefix, shard, most, access_ttl, now)
  -- A row also has other fields than its apps, so this test is on the safe side and avoids the walk for most people.
  if redis.call('HLEN', user) <= most then return true end
  local apps = apps_of(user)
  if #apps < most then return true end
  local standing, spare = 0, {}
  for _, client in ipairs(apps) do
    local row = redis.call('HMGET', prefix .. 'grant:' .. client, 'epoch', 'revoked_at')
    if not row[1] then
      drop_app(user, due, outbox, prefix .. 'docs:' .. client, shard .. 'app:' .. client .. ':users', client, member)
    else
      standing = standing + 1
      if row[2] and redis.call('EXISTS', prefix .. 'docs:' .. client) == 0 then
        spare[#spare + 1] = {client, '', row[2]}
      end
    end
  end
  if standing - #spare >= most then return false end
  newest_first(spare)
  for place = #spare, #spare - (standing - most), -1 do
    local client = spare[place][1]
    for _, id in ipairs(families_of(prefix .. 'grant:' .. client)) do
      crowd_out(prefix .. 'grant:' .. client, prefix .. 'family:', id, false, access_ttl, now)
    end
    for _, noun in ipairs({'grant', 'meta', 'index', 'usage'}) do
      redis.call('UNLINK', prefix .. noun .. ':' .. client)
    end
    drop_app(user, due, outbox, prefix .. 'docs:' .. client, shard .. 'app:' .. client .. ':users', client, member)
  end
  return true
end
