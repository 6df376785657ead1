--- Read a page of each stream of the security log in one script, so that no event arrives between the streams.
--- KEYS[1] strangers
--- KEYS[2] people
--- KEYS[3] sensitive
--- KEYS[4] operator
--- ARGV[1] first: an id for XRANGE or XREVRANGE
--- ARGV[2] last: the same
--- ARGV[3] most: events of each stream
--- ARGV[4] backwards: 1 for the newest first
--- @reply ok pages
--- @idempotent

local pages = {}
for _, stream in ipairs({strangers, people, sensitive, operator}) do
  if backwards == '1' then
    pages[#pages + 1] = redis.call('XREVRANGE', stream, first, last, 'COUNT', most)
  else
    pages[#pages + 1] = redis.call('XRANGE', stream, first, last, 'COUNT', most)
  end
end
return {'ok', pages}
