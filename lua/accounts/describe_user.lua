--- Read a person's row and grants for the operator.
--- KEYS[1] user
--- KEYS[2] audit
--- KEYS[3] apps
--- KEYS[4] activity
--- KEYS[5] teams
--- ARGV[1] grant_prefix: prefix of a grant's key, up to the client id
--- @reply not_found
--- @reply ok email email_verified name picture status created_at rows entries ordinary registered groups suspension joined kept_out delete_at external_id
--- @derives grant_prefix
--- @idempotent
--- @include "audit"
--- @include "connected"
--- @include "budgets"

local row = redis.call('HMGET', user, 'email', 'verified', 'name', 'picture', 'status', 'created_at', 'groups',
  'suspended_reason', 'suspended_note', 'suspended_until', 'delete_at', 'external_id')
if not row[5] then return {'not_found'} end
local rows = {}
for _, client in ipairs(apps_of(user)) do
  local grant = redis.call('HMGET', grant_prefix .. client,
    'scope', 'connected_at', 'last_used_at', 'revoked_at', 'spend_limit', 'paused_at', 'issuer', 'left_out',
    unpack(BUDGET_FIELDS))
  if grant[1] then
    rows[#rows + 1] = {client, grant[1], grant[2], grant[3] or '', grant[4] or '', grant[5] or '', grant[6] or '',
      grant[7] or '', grant[8] or '', budgets_told(grant, 9, now_ms())}
  end
end
return {'ok', row[1], row[2] or '0', row[3], row[4] or '', row[5], row[6], newest_first(rows),
  events_of(audit), events_of(activity), redis.call('ZRANGE', apps, 0, -1), row[7] or '', row[8] and {row[8], row[9] or '', row[10] or ''} or {},
  redis.call('ZRANGE', teams, 0, -1), kept_out_of(user), row[11] or '', row[12] or ''}
