--- Read the credentials to verify a password, if the row has the address that led to it. Ends a suspension that is over.
--- KEYS[1] user
--- KEYS[2] audit
--- ARGV[1] email
--- @reply not_found
--- @reply ok password status session_epoch preferences suspended_reason
--- @idempotent
--- @include "preferences"
--- @include "suspension"

local row = redis.call('HMGET', user, 'email', 'password', 'status', 'epoch', 'language', 'zone', 'suspended_until',
  'suspended_reason')
if row[1] ~= email then return {'not_found'} end
local status = status_now(user, audit, row[3], row[7], now_ms())
return {'ok', row[2], status, row[4], in_one(row[5], row[6]), row[8] or ''}
