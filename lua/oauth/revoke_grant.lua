--- Disconnect an app for the signed-in person: every token dies, hosted data enters the grace window. (SPEC 3.1)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] grant
--- KEYS[4] audit
--- KEYS[5] docs
--- KEYS[6] meta
--- KEYS[7] index
--- KEYS[8] usage
--- KEYS[9] due
--- KEYS[10] outbox
--- ARGV[1] client
--- ARGV[2] fresh_epoch
--- ARGV[3] grace (number): ms
--- ARGV[4] idle (number): ms
--- ARGV[5] address
--- ARGV[6] agent
--- ARGV[7] member: the person in the lists of the shard
--- ARGV[8] keeps_out: '1' if an issuer of assertions could connect the app again
--- @reply signed_out
--- @reply not_found
--- @reply ok until
--- @durable
--- @reserve
--- @include "session"
--- @include "grant"
--- @include "audit"
--- @include "touch"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local given = redis.call('HMGET', grant, 'epoch', 'revoked_at', 'issuer')
if not given[1] then return {'not_found'} end
if given[2] then
  -- For a repeated call, "not connected" means that it is done.
  touch(grant)
  return {'not_found'}
end

end_grant(user, grant, {docs, meta, index, usage}, due, outbox, client, member, 'disconnected_by_person', fresh_epoch, grace,
  now)
if keeps_out == '1' or given[3] then redis.call('HSET', user, kept_out_field(client), int(now)) end
record(audit, 'app_disconnected', client, address, agent)
return {'ok', now + grace}
