--- Make a link the newest of its purpose, for a person who still has the link's address.
--- KEYS[1] user
--- KEYS[2] link
--- KEYS[3] window
--- ARGV[1] link_id
--- ARGV[2] email: the person's address, as read
--- ARGV[3] ttl (number): ms
--- ARGV[4] target: the person's target page, or empty
--- ARGV[5] again: '0' if a link that still works is enough
--- ARGV[6] unless_confirmed: '1' for a link that only an unconfirmed address needs
--- ARGV[7] mailed: '1' if a mail server sends the mail, '0' without one
--- ARGV[8] limit (number)
--- ARGV[9] period (number): ms
--- ARGV[10] same (number): ms in which a link that still works is mailed again; 0: never
--- @reply gone
--- @reply confirmed
--- @reply waiting
--- @reply rate_limited reset retry
--- @reply ok link_id preferences
--- @reserve
--- @include "window"
--- @include "preferences"
--- @include "audit"

local row = redis.call('HMGET', user, 'status', 'email', 'verified', 'epoch', 'language', 'zone')
if row[1] ~= 'active' or row[2] ~= email then return {'gone'} end
if unless_confirmed == '1' and row[3] == '1' then return {'confirmed'} end
if again ~= '1' then
  local sent = redis.call('HMGET', link, 'email', 'epoch', 'mailed')
  -- A link from before there was a mail server never reached the person.
  if sent[1] == email and sent[2] == row[4] and sent[3] == '1' then
    redis.call('HSET', link, 'target', target)
    return {'waiting'}
  end
end

local now = now_ms()
local admitted, _, reset, retry = take_window(window, limit, period, now)
if not admitted then return {'rate_limited', reset, retry} end
local born = now
if same > 0 then
  local last = redis.call('HMGET', link, 'id', 'email', 'epoch', 'used', 'born')
  -- A stranger who asks again must not end the link in the person's mailbox.
  if last[2] == email and last[3] == row[4] and not last[4] and last[5] and now - tonumber(last[5]) < same then
    link_id, born = last[1], tonumber(last[5])
  end
end
redis.call('DEL', link)
redis.call('HSET', link, 'id', link_id, 'email', email, 'epoch', row[4], 'target', target,
  'mailed', mailed)
if same > 0 then redis.call('HSET', link, 'born', int(born)) end
redis.call('PEXPIREAT', link, int(now + ttl))
record_apart(user, 'link_issued', '', '', '')
return {'ok', link_id, in_one(row[5], row[6])}
