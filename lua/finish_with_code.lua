--- Sign a person in whose password was right, by a code of the authenticator app or a recovery code.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] sessions
--- KEYS[4] audit
--- KEYS[5] factors
--- KEYS[6] recovery
--- KEYS[7] window
--- ARGV[1] session_id
--- ARGV[2] session_epoch: as it was beside the password
--- ARGV[3] at: of the password, ms
--- ARGV[4] lasts: ms
--- ARGV[5] secret: sealed, as it was read; or empty
--- ARGV[6] step: the time step of the code, or empty
--- ARGV[7] digest: of a recovery code, or empty
--- ARGV[8] limit
--- ARGV[9] period: ms
--- ARGV[10] idle: ms
--- ARGV[11] lifetime: ms
--- ARGV[12] address
--- ARGV[13] agent
--- @reply over
--- @reply rate_limited reset retry
--- @reply wrong
--- @reply ok email before
--- @durable
--- @include "session"
--- @include "guess"
--- @include "factors"
local user, session, sessions, audit = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local factors, recovery, window = KEYS[5], KEYS[6], KEYS[7]
local session_id, session_epoch, at, lasts = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local secret, step, digest, limit, period = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local idle, lifetime, address, agent = tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12], ARGV[13]

local now = now_ms()
local row = redis.call('HMGET', user, 'status', 'epoch')
if row[1] ~= 'active' or row[2] ~= session_epoch or now - at > lasts then return {'over'} end
local admitted, reset, retry = take_guess(window, audit, limit, period, address, agent, now)
if not admitted then return {'rate_limited', reset, retry} end
if not take_code(factors, recovery, secret, step, digest) then return {'wrong'} end
-- What was mistyped before does not count against somebody who has the right one.
redis.call('DEL', window)
write_session(session, sessions, session_id, session_epoch, idle, lifetime, address, agent, now)
if digest ~= '' then redis.call('HSET', session, 'recovered_at', int(now)) end
local before = sign_ins(audit)
record(audit, digest ~= '' and 'signed_in_by_recovery' or 'signed_in', '', address, agent)
return {'ok', redis.call('HGET', user, 'email'), before}
