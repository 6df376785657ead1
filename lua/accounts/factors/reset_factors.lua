--- Remove a person's authenticator app, passkeys and recovery codes for the operator.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] factors
--- KEYS[4] passkeys
--- KEYS[5] recovery
--- KEYS[6] guesses
--- @reply not_found
--- @reply ok
--- @durable
--- @reserve
--- @include "audit"

if redis.call('EXISTS', user) == 0 then return {'not_found'} end
redis.call('DEL', factors, passkeys, recovery, guesses)
record(audit, 'factors_reset_by_operator', '', '', '')
return {'ok'}
