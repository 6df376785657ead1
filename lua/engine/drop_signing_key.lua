--- Remove the private half of a signing key that is over, or the whole key, unless its state has changed.
--- KEYS[1] signing
--- ARGV[1] kid
--- ARGV[2] expected: its state
--- ARGV[3] whole: '1' to remove the public half as well
--- @reply changed
--- @reply ok
--- @idempotent
--- @reserve

if redis.call('HGET', signing, kid .. ':state') ~= expected then return {'changed'} end
redis.call('HDEL', signing, kid .. ':private')
if whole == '1' then redis.call('HDEL', signing, kid .. ':public', kid .. ':state') end
return {'ok'}
