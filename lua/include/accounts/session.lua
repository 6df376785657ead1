--- @include "now"
--- @include "preferences"
-- Whether this browser session is live: its row exists, its person is active, and its epoch is the person's. Extends the
-- idle lifetime, at most once a minute and ten times in its course.
local function live_session(user, session, idle, now)
  local row = redis.call('HMGET', session, 'epoch', 'seen_at', 'ends_at')
  if not row[1] then return false end
  local person = redis.call('HMGET', user, 'status', 'epoch')
  if person[1] ~= 'active' or person[2] ~= row[1] then return false end
  if now - tonumber(row[2]) >= math.min(60000, idle / 10) then
    -- The expiry comes first: it takes no memory, so a full store also accepts the other writes, and pages still work.
    redis.call('PEXPIREAT', session, int(math.min(now + idle, tonumber(row[3]))))
    redis.call('HSET', session, 'seen_at', int(now))
  end
  return true
end

-- The person's details for every page: e-mail, whether it is confirmed ('1' or '0'), name, picture, preferences. A field
-- that one page needs is read in its own script, as passkey_offer is.
local function profile(user)
  local row = redis.call('HMGET', user, 'email', 'verified', 'name', 'picture', 'language', 'zone')
  return row[1], row[2] or '0', row[3], row[4] or '', in_one(row[5], row[6])
end

local LONGEST_SESSION = 30 * 86400000  -- ms; no setting allows more, but an earlier one may have allowed more than now

-- Writes a session row that expires after `idle` ms without use, or after `lifetime` ms. `method` says how the person signed
-- in (`METHODS` in store/oauth/sign_in.py); a row without one was started by password alone.
local function write_session(session, sessions, id, epoch, idle, lifetime, address, agent, method, now)
  redis.call('HSET', session, 'epoch', epoch, 'created_at', int(now), 'seen_at', int(now),
    'ends_at', int(now + lifetime), 'address', address, 'agent', agent)
  if method ~= '' then redis.call('HSET', session, 'method', method) end
  redis.call('PEXPIREAT', session, int(now + math.min(idle, lifetime)))
  redis.call('ZREMRANGEBYSCORE', sessions, '-inf', int(now - LONGEST_SESSION))
  redis.call('ZADD', sessions, int(now), id)
end

-- Gives a live session a new id, so that copies of its previous cookie stop working. (RFC 9700 4.7)
local function move_session(session, sessions, id, new_session, new_id)
  if new_id == id then return end
  redis.call('ZADD', sessions, redis.call('HGET', session, 'created_at'), new_id)
  redis.call('ZREM', sessions, id)
  redis.call('RENAME', session, new_session)
end
