--- @include "connected"
--- @include "due"
--- @include "families"
-- Whether a person's row has a place for one more app, of `most`. Those in their grace window have a place too, as every
-- reader of the row looks at them. Where none is free, apps that have no grant any more give theirs up, and then, the one
-- first that was disconnected first, those that were disconnected and keep no documents: of them nothing is left that was
-- promised. `prefix` is what stands before a noun in the person's keys, `shard` what stands before 'app:' in those of the
-- shard.
local function has_place(user, due, outbox, member, prefix, shard, most, access_ttl, now)
  -- A row has fields beside its apps, so this is on the safe side and spares all others the walk.
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
