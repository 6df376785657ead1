--- Note that the deletion of a person begins, so that an interrupted deletion can continue.
--- KEYS[1] leaving: all open deletions
--- ARGV[1] user_id
--- @reply ok
--- @reserve
--- @include "now"

redis.call('ZADD', leaving, int(math.floor(now_ms() / 1000)), user_id)
return {'ok'}
