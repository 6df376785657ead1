--- Read a delivery of an app, and the attempts at it.
--- KEYS[1] delivery
--- KEYS[2] attempts: the last attempts at any delivery of the app
--- ARGV[1] id
--- ARGV[2] client
--- ARGV[3] most (number): attempts to return, the last ones; 0 for none
--- ARGV[4] kept (number): attempts that are kept for an app
--- ARGV[5] keep (number): ms that an attempt is kept
--- @reply not_found
--- @reply ok row attempts
--- @idempotent
--- @include "now"
--- @include "delivery"

if not is_delivery(delivery) or redis.call('HGET', delivery, 'client') ~= client then return {'not_found'} end
local found = {}
if most > 0 and redis.call('TYPE', attempts).ok == 'stream' then
  for _, entry in ipairs(redis.call('XREVRANGE', attempts, '+', int(now_ms() - keep), 'COUNT', int(kept))) do
    local fields = entry[2]
    for position = 1, #fields, 2 do
      if fields[position] == 'delivery' and fields[position + 1] == id and #found < most then
        table.insert(found, 1, fields)
      end
    end
  end
end
return {'ok', redis.call('HGETALL', delivery), found}
