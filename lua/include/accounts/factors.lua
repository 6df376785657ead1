--- @include "now"
-- Whether this person has a second step: an authenticator app or a passkey.
local function has_factor(factors, passkeys)
  return redis.call('EXISTS', factors, passkeys) > 0
end

-- Whether the person re-authenticated in this session within `proof` ms: with the second step if there is one, otherwise
-- with the password. The sign-in itself does not count, because a copy of the cookie would inherit it.
local function proved(session, factors, passkeys, proof, now)
  local at = redis.call('HGET', session, has_factor(factors, passkeys) and 'shown_at' or 'proved_at')
  return at and now - tonumber(at) <= proof or false
end

-- A change uses up a re-authentication with the second step: afterwards it counts only as a typed password.
local function spend_proof(session)
  local at = redis.call('HGET', session, 'shown_at')
  if not at then return end
  redis.call('HDEL', session, 'shown_at')
  redis.call('HSET', session, 'proved_at', at)
end

-- Whether this session began with the last recovery code within `proof` ms, so that its person has no code left.
local function recovered(session, recovery, proof, now)
  local at = redis.call('HGET', session, 'recovered_at')
  return at and now - tonumber(at) <= proof and redis.call('EXISTS', recovery) == 0
end

-- Takes a code of the authenticator app, as its time step under `secret`, or a recovery code, as its digest. Each works
-- once (RFC 6238 5.2).
local function take_code(factors, recovery, secret, step, digest)
  if step ~= '' then
    local row = redis.call('HMGET', factors, 'secret', 'step')
    if row[1] ~= secret or tonumber(step) <= tonumber(row[2]) then return false end
    redis.call('HSET', factors, 'step', step)
    return true
  end
  return digest ~= '' and redis.call('SREM', recovery, digest) == 1
end

-- Stores recovery codes with a first factor. Returns 1 if it stored them, 0 if the person has some already.
local function begin_recovery(recovery, digests)
  if redis.call('EXISTS', recovery) == 1 then return 0 end
  for _, digest in ipairs(digests) do redis.call('SADD', recovery, digest) end
  return 1
end

-- A challenge can be answered once, within `lasts` ms of its issue. The mark outlives it, even if the clock steps back.
local function take_challenge(used, issued, lasts, now)
  if now - issued > lasts then return false end
  return redis.call('SET', used, '1', 'NX', 'PX', int(math.max(0, issued + lasts - now) + 60000)) and true or false
end

-- Advances the counter of a passkey from its row `last`. A counter that does not rise shows a copy of the passkey; one
-- that stays at zero belongs to a passkey that does not count. (WebAuthn 6.1.1)
local function count_on(passkeys, credential, last, count, now)
  local before = tonumber(string.match(last, '^(%d+)'))
  if (count > 0 or before > 0) and count <= before then return false end
  redis.call('HSET', passkeys, 'n:' .. credential, int(count) .. ' ' .. int(now))
  return true
end
