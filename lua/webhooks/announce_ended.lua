--- Announce hosted data that ended with its grace window; expiry itself sends no event. (SPEC 3.1)
--- KEYS[1] due
--- KEYS[2] outbox
--- ARGV[1] people: prefix of a person's keys, up to the member of the list
--- ARGV[2] steps (number): pairs to read in one call
--- @reply ok looked
--- @derives people
--- @reserve
--- @include "announce"

local now = now_ms()
local entries = redis.call('ZRANGE', due, '-inf', int(now), 'BYSCORE', 'LIMIT', '0', int(steps), 'WITHSCORES')
for position = 1, #entries, 2 do
  local member, client = string.match(entries[position], '^(%x+):(.+)$')
  local left = -2
  if member then
    local prefix = people .. member .. ':'
    for _, noun in ipairs({'docs', 'meta', 'index', 'usage'}) do
      local its = redis.call('PTTL', prefix .. noun .. ':' .. client)
      -- Without an expiry the data lasts: the grant is live again.
      left = its == -1 and math.huge or math.max(left, its)
    end
  end
  if left >= 0 and left < math.huge then
    redis.call('ZADD', due, int(now + left + 1), entries[position])
  else
    redis.call('ZREM', due, entries[position])
    if member and left == -2 then
      announce(people .. member .. ':user', outbox, 'data.deleted', client, member, 'grace_over', tonumber(entries[position + 1]))
    end
  end
end
return {'ok', #entries / 2}
