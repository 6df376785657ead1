--- Sign a person in with an identity at another server: start a new session, or lead to the second step.
--- (RFC 9700 4.7, session fixation)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] identities
--- KEYS[5] audit
--- KEYS[6] factors
--- KEYS[7] passkeys
--- KEYS[8] undos
--- KEYS[9] outbox
--- KEYS[10] apps
--- KEYS[11] teams
--- ARGV[1] session_id
--- ARGV[2] name: of the index entry
--- ARGV[3] text: issuer and subject
--- ARGV[4] label
--- ARGV[5] own_step: '1' if a second step here is asked for, where the person has one
--- ARGV[6] method
--- ARGV[7] idle (number): ms
--- ARGV[8] lifetime (number): ms
--- ARGV[9] address
--- ARGV[10] agent
--- ARGV[11] session_prefix: prefix of a session's key, up to the session id
--- ARGV[12] most_sessions (number): of one person
--- ARGV[13] member: the person in the lists of the shard
--- ARGV[14] required: who must have a second step: all, owners, or empty
--- @reply unknown
--- @reply suspended suspended_reason
--- @reply second_step session_epoch at devices_since
--- @reply setup session_epoch at devices_since
--- @reply ok session_epoch warned before now
--- @derives session_prefix
--- @reserve
--- @include "session"
--- @include "idlest"
--- @include "audit"
--- @include "factors"
--- @include "required"
--- @include "device"
--- @include "undo"
--- @include "identity"
--- @include "suspension"

local known, linked = read_identity(redis.call('HGET', identities, name))
if known ~= text then return {'unknown'} end
local now = now_ms()
local row = redis.call('HMGET', user, 'status', 'epoch', 'devices', 'suspended_until', 'suspended_reason')
if not row[1] then return {'unknown'} end
if status_now(user, audit, row[1], row[4], now) ~= 'active' then return {'suspended', row[5] or ''} end
write_identity(identities, name, text, linked, int(now), label)
-- The provider's second step counts where the operator trusts it and the provider said that there was one.
local counted = own_step ~= '1' and method ~= 'up'
local must = not counted and must_set_up(required, apps, teams)
if (own_step == '1' or must) and has_factor(factors, passkeys) then
  return {'second_step', row[2], int(now), devices_since(row[2], row[3])}
end
if must then return {'setup', row[2], int(now), devices_since(row[2], row[3])} end
if end_idlest(user, sessions, session_prefix, row[2], most_sessions, outbox, member, now) > 0 then
  record(audit, 'session_crowded_out', '', address, agent)
end
write_session(session, sessions, session_id, row[2], idle, lifetime, address, agent, method, now)
local before = sign_ins(audit)
record(audit, 'signed_in_by_provider', '', address, agent)
return {'ok', row[2], warned_of(user, undos, now), before, int(now)}
