--- Read what lists of people show of one.
--- KEYS[1] user
--- KEYS[2] audit
--- @reply not_found
--- @reply ok email email_verified name status created_at suspended signed_in groups external_id note delete_at
--- @idempotent

local row = redis.call('HMGET', user, 'email', 'verified', 'name', 'status', 'created_at', 'suspended_reason', 'groups',
  'external_id', 'suspended_note', 'delete_at')
if not row[4] then return {'not_found'} end
-- The newest line comes first. A line without a break before it is the first one.
local signed_in = string.match('\n' .. (redis.call('GET', audit) or ''), '\n(%d+) signed_in')
return {'ok', row[1], row[2] or '0', row[3], row[4], row[5], row[6] and '1' or '', signed_in or '', row[7] or '',
  row[8] or '', row[9] or '', row[10] or ''}
