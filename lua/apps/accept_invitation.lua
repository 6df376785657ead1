--- Write a registration with a new member of its team, and use up the invitation, if both are unchanged.
--- KEYS[1] app
--- KEYS[2] invitations
--- ARGV[1] expected: the bytes that were read
--- ARGV[2] registration: the bytes to store
--- ARGV[3] id: of the invitation
--- ARGV[4] row: the invitation that was read
--- ARGV[5] channel: of invalidations
--- ARGV[6] client
--- @reply conflict
--- @reply over
--- @reply ok
--- @durable

if (redis.call('HGET', invitations, id) or '') ~= row then return {'over'} end
if (redis.call('GET', app) or '') ~= expected then return {'conflict'} end
redis.call('HDEL', invitations, id)
redis.call('SET', app, registration, 'KEEPTTL')
redis.call('PUBLISH', channel, client)
return {'ok'}
