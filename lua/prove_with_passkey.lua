--- Hold the answer of a passkey against the account of a signed-in person. (WebAuthn 7.2)
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] passkeys
--- KEYS[5] used
--- ARGV[1] credential: id, base64url
--- ARGV[2] count: the passkey's counter of signatures
--- ARGV[3] issued: of the challenge, ms
--- ARGV[4] lasts: ms
--- ARGV[5] idle: ms
--- ARGV[6] address
--- ARGV[7] agent
--- @reply signed_out
--- @reply unknown
--- @reply used
--- @reply regressed
--- @reply ok
--- @include "session"
--- @include "audit"
--- @include "factors"
local user, session, audit, passkeys, used = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local credential, count, issued, lasts = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local idle, address, agent = tonumber(ARGV[5]), ARGV[6], ARGV[7]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
local last = redis.call('HGET', passkeys, 'n:' .. credential)
if not last then return {'unknown'} end
if not take_challenge(used, issued, lasts, now) then return {'used'} end
if not count_on(passkeys, credential, last, count, now) then
  record(audit, 'passkey_copied', '', address, agent)
  return {'regressed'}
end
return {'ok'}
