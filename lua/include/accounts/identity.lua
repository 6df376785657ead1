-- A person's identities at other servers: a hash with a field for each, named as in the index. A value is the issuer, a
-- space, the subject and, once the person has signed in with it or linked it, a line with when it was linked and last
-- used (ms, 0 for never) and a label for the page of security.

-- The parts of a value: text, linked, used, label.
local function read_identity(value)
  local text, linked, used, label = string.match(value or '', '^([^\n]*)\n(%d+) (%d+) ([^\n]*)$')
  if text then return text, linked, used, label end
  return value, '0', '0', ''
end

local function write_identity(identities, name, text, linked, used, label)
  redis.call('HSET', identities, name, text .. '\n' .. linked .. ' ' .. used .. ' ' .. label)
end

-- Whether a person without a password signed in at another server for this session within `proof` ms, so that only a
-- code is missing.
local function proved_elsewhere(session, proof, now)
  local at = redis.call('HGET', session, 'elsewhere_at')
  return at and now - tonumber(at) <= proof or false
end

-- Whether a person has a password: the hash of an account without one ends in zeros (store/crypto/passwords.py).
local NO_PASSWORD = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
local function has_password(user)
  local password = redis.call('HGET', user, 'password')
  return password and string.sub(password, -32) ~= NO_PASSWORD
end
