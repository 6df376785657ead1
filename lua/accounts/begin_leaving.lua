--- Note that the deletion of a person begins, for who goes on with it if it is cut short.
--- KEYS[1] leaving: all of those
--- ARGV[1] user_id
--- @reply ok
--- @reserve
--- @include "now"

redis.call('ZADD', leaving, int(math.floor(now_ms() / 1000)), user_id)
return {'ok'}
