--- @include "audit"
-- The status of a person, given what the row says of it and of the end of a suspension (ms, or nothing). A suspension whose
-- time has come ends here: nobody else waits for it, since its person has neither a session nor a live token.
local function status_now(user, audit, status, ends, now)
  if status ~= 'disabled' or not ends or now < tonumber(ends) then return status end
  redis.call('HSET', user, 'status', 'active')
  redis.call('HDEL', user, 'suspended_reason', 'suspended_note', 'suspended_until')
  record(audit, 'suspension_ended', '', '', '')
  return 'active'
end
