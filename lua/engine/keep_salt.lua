--- Write the sealed salt of pairwise ids, unless it changed meanwhile.
--- KEYS[1] keyring
--- ARGV[1] expected: what was read, empty if there was none
--- ARGV[2] sealed
--- @reply ok salt
--- @idempotent
--- @durable
--- @reserve

local salt = redis.call('HGET', keyring, 'pairwise') or ''
if salt == expected then salt = sealed end
-- Also written if another process was quicker: that process may not have waited for a replica yet.
redis.call('HSET', keyring, 'pairwise', salt)
return {'ok', salt}
