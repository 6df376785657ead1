--- Disconnect an app from a person for an operator: every token dies, hosted data enters the grace window. (SPEC 3.1)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] audit
--- KEYS[4] docs
--- KEYS[5] meta
--- KEYS[6] index
--- KEYS[7] usage
--- KEYS[8] due
--- KEYS[9] outbox
--- ARGV[1] client
--- ARGV[2] fresh_epoch
--- ARGV[3] grace (number): ms
--- ARGV[4] member: the person in the lists of the shard
--- @reply not_found
--- @reply ok until
--- @durable
--- @reserve
--- @include "grant"
--- @include "audit"
--- @include "touch"

local now = now_ms()
if redis.call('HEXISTS', user, 'status') == 0 then return {'not_found'} end
local given = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'issuer')
if not given[1] then return {'not_found'} end
if given[2] then
  touch(grant)
  return {'not_found'}
end
end_grant(user, grant, {docs, meta, index, usage}, due, outbox, client, member, 'disconnected_by_operator', fresh_epoch,
  grace, now)
if given[3] then redis.call('HSET', user, kept_out_field(client), int(now)) end
record(audit, 'app_disconnected_by_operator', client, '', '')
return {'ok', now + grace}
