--- Write a new person; the reservation of the e-mail address names this id already.
--- KEYS[1] user
--- KEYS[2] users
--- KEYS[3] audit
--- ARGV[1] user_id
--- ARGV[2] email
--- ARGV[3] email_verified: '1' or '0'
--- ARGV[4] name
--- ARGV[5] password: the raw hash
--- ARGV[6] event: signed_up or created_by_operator
--- ARGV[7] address
--- ARGV[8] agent
--- @reply exists
--- @reply ok
--- @include "now"
--- @include "audit"
local user, users, audit = KEYS[1], KEYS[2], KEYS[3]
local user_id, email, email_verified, name, password = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local event, address, agent = ARGV[6], ARGV[7], ARGV[8]

if redis.call('EXISTS', user) == 1 then return {'exists'} end
local now = now_ms()
redis.call('HSET', user, 'email', email, 'email_verified', email_verified, 'name', name, 'picture', '',
  'password', password, 'status', 'active', 'session_epoch', '1', 'created_at', int(now))
redis.call('ZADD', users, int(now), user_id)
record(audit, event, '', address, agent)
return {'ok'}
