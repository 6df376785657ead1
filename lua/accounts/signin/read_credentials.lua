--- Read the credentials to verify a password, if the row has the address that led to it.
--- KEYS[1] user
--- ARGV[1] email
--- @reply not_found
--- @reply ok password status session_epoch preferences
--- @idempotent
--- @include "preferences"

local row = redis.call('HMGET', user, 'email', 'password', 'status', 'epoch', 'language', 'zone')
if row[1] ~= email then return {'not_found'} end
return {'ok', row[2], row[3], row[4], in_one(row[5], row[6])}
