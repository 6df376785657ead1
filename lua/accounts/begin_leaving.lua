--- Note when the deletion of a person begins, so that an interrupted or planned deletion can continue.
--- KEYS[1] leaving: all open deletions
--- ARGV[1] user_id
--- ARGV[2] at: when it begins, seconds; or empty for now; or 0 to take it off the list
--- ARGV[3] seen: the time in the list that this one replaces, seconds; or empty for any
--- @reply changed
--- @reply ok
--- @reserve
--- @include "now"

local present = redis.call('ZSCORE', leaving, user_id)
if seen ~= '' and (not present or tonumber(present) ~= tonumber(seen)) then return {'changed'} end
if at == '0' then
  redis.call('ZREM', leaving, user_id)
else
  redis.call('ZADD', leaving, at ~= '' and at or int(math.floor(now_ms() / 1000)), user_id)
end
return {'ok'}
