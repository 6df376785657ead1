--- Claim the idempotency key of an operator's write, or read what is kept under it.
--- In a full store too: suspending and deleting people need a claim.
--- KEYS[1] operator_reply
--- ARGV[1] value: the mark of a write in progress
--- ARGV[2] lasts: ms
--- @reply kept value
--- @reply ok
--- @reserve

local kept = redis.call('GET', operator_reply)
if kept then return {'kept', kept} end
redis.call('SET', operator_reply, value, 'PX', lasts)
return {'ok'}
