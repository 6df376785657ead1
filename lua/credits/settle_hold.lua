--- End a hold with the charge for the used tokens, never more than was held.
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] balance
--- KEYS[4] holds
--- KEYS[5] ledger
--- KEYS[6] idem: the record of the idempotency key
--- KEYS[7] reply: where the reply under that key is kept
--- KEYS[8] replies: the kept replies, by time
--- ARGV[1] client
--- ARGV[2] hold: its id
--- ARGV[3] model
--- ARGV[4] input (number): tokens
--- ARGV[5] output (number): tokens; with 0 of both nothing is charged and no entry is made
--- ARGV[6] input_price (number): micro-dollars per million tokens
--- ARGV[7] output_price (number): the same
--- ARGV[8] price_version
--- ARGV[9] keyed: '1' with an idempotency key
--- ARGV[10] sealed: the reply; '' if it is not kept
--- ARGV[11] name: of the reply among the kept ones
--- ARGV[12] reply_prefix: prefix of its key, up to that name
--- ARGV[13] keep (number): ms that the record is kept
--- ARGV[14] max_reply_bytes (number): of all kept replies of the person
--- ARGV[15] retention (number): ms that an entry stays in the ledger
--- ARGV[16] most (number): entries of the ledger
--- @reply ended
--- @reply ok charged left
--- @derives reply_prefix
--- @idempotent
--- @durable
--- @reserve
--- @include "credits"
--- @include "spending"
--- @include "replies"
--- @include "touch"

local now = now_ms()
local row = redis.call('HGET', holds, hold)
if not row or redis.call('EXISTS', user) == 0 then return {'ended'} end
local stands, amount, ends = read_hold(row)
if ends <= now then return {'ended'} end
if not stands then
  touch(holds)
  return {'ok', amount, paid_of(balance) - held_of(holds, client, now)}
end

local charged = math.min(amount, cost_of(input, output, input_price, output_price))
-- The mark of a settled hold stays until the hold would have ended, so that a repeated settlement finds it.
write_hold(holds, hold, 's', charged, ends, client, now)
if input + output > 0 then
  book_entry(ledger, balance, 'charge', -charged, {'client', client, 'model', model, 'input', int(input),
    'output', int(output), 'price', price_version, 'hold', hold}, retention, most, now)
  book_spending(grant, charged, (month_of(now)))
end
local left = paid_of(balance) - held_of(holds, client, now)
if keyed == '1' and redis.call('HGET', idem, 'hold') == hold then
  redis.call('HSET', idem, 'state', 'done', 'charged', int(charged), 'left', int(left))
  redis.call('PEXPIREAT', idem, int(now + keep))
  if sealed ~= '' then keep_reply(balance, replies, reply, reply_prefix, name, sealed, keep, max_reply_bytes, now) end
end
return {'ok', charged, left}
