--- Enable an authenticator app after a first right code.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- KEYS[6] recovery
--- KEYS[7] undos
--- ARGV[1] secret: sealed
--- ARGV[2] step: the time step of the code
--- ARGV[3] digests (json): of recovery codes
--- ARGV[4] idle (number): ms
--- ARGV[5] proof (number): ms
--- ARGV[6] address
--- ARGV[7] agent
--- ARGV[8] undo_id: of the link that undoes a first second step
--- ARGV[9] undo_lasts (number): ms that the link works
--- ARGV[10] undo_most (number): such links for one address
--- @reply signed_out
--- @reply unproved
--- @reply present
--- @reply ok begun undo
--- @durable
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"
--- @include "first_factor"

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
if redis.call('EXISTS', factors) == 1 then return {'present'} end
local undo = ''
if not has_factor(factors, passkeys) then
  undo = undo_first_factor(user, undos, undo_id, undo_lasts, undo_most, now)
end
redis.call('HSET', factors, 'secret', secret, 'step', step, 'since', int(now))
spend_proof(session)
record(audit, 'totp_enabled', '', address, agent)
return {'ok', begin_recovery(recovery, digests), undo}
