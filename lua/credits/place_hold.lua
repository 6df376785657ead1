--- Admit an AI call and hold the most it can cost. (SPEC 4.6)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] balance
--- KEYS[7] holds
--- KEYS[8] idem: the record of the idempotency key
--- KEYS[9] reply: the reply kept under the key
--- KEYS[10] lease: what the shard may spend of the app's daily limit
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] client
--- ARGV[5] hold: its id
--- ARGV[6] input (number): tokens, at most
--- ARGV[7] least (number): output tokens without which the call makes no sense
--- ARGV[8] output (number): requested tokens
--- ARGV[9] input_price (number): micro-dollars per million tokens
--- ARGV[10] output_price (number): the same
--- ARGV[11] hold_ttl (number): ms
--- ARGV[12] digests: of the request, the one to keep first, then those that count as the same; '' without an idempotency key
--- ARGV[13] most (number): holds that a person may have at once
--- ARGV[14] reads: the scope for reading what is left; '' if the app has not registered it
--- ARGV[15] counted: '1' if the window has counted this request
--- ARGV[16] proof: of the key that the token is bound to, or empty
--- ARGV[17] person_day (number): micro-dollars that the person may spend in a day; 0 without a limit
--- ARGV[18] leasing: '1' if the app has a daily limit
--- ARGV[19] slice (number): micro-dollars of the app's limit for the shard, to be added to its lease
--- ARGV[20] final (number): the day on which there is no further slice; 0 for none
--- ARGV[21] fee (number): micro-dollars for all calls of tools that the model's server may make
--- ARGV[22] mails: '1' if mails reach people
--- ARGV[23] model
--- ARGV[24] family_id
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply running remaining reset
--- @reply mismatch remaining reset
--- @reply reply_gone remaining reset
--- @reply replayed remaining reset charged left reads sealed
--- @reply crowded remaining reset
--- @reply insufficient_credits remaining reset
--- @reply app_spend_limit remaining reset retry notices to
--- @reply person_spend_limit remaining reset retry notices to
--- @reply app_day_limit remaining reset retry
--- @reply budget_exhausted remaining reset retry
--- @reply model_not_allowed remaining reset
--- @reply lease remaining reset day missing
--- @reply held remaining reset output amount reads
--- @derives proof
--- @durable
--- @include "guard"
--- @include "credits"
--- @include "spending"

local now = now_ms()
-- What the guard needs of the grant, then the limit of the month and the values of BUDGET_FIELDS.
local given = redis.call('HMGET', grant, 'epoch', 'scope', 'revoked_at', 'last_used_at', 'paused_at', 'spend_limit',
  'spend_month', 'spent', 'budget:credits', 'used:credits', 'budget:llm-inference', 'used:llm-inference')
local word, a, b, scope, granted, chain =
  admit(user, grant, family, access, window, needed, limit, period, now, proof, counted ~= '', given)
if word ~= 'ok' then return {word, a, b} end
if slice > 0 then
  --- @include "daily"
  add_slice(lease, final, slice, now)
end
reads = reads ~= '' and has_scope(scope, reads) and has_scope(granted, reads) and 1 or 0

if digests ~= '' then
  local before = redis.call('HMGET', idem, 'digest', 'state', 'charged', 'left')
  if before[1] then
    if not string.find(' ' .. digests .. ' ', ' ' .. before[1] .. ' ', 1, true) then return {'mismatch', a, b} end
    if before[2] ~= 'done' then return {'running', a, b} end
    local sealed = redis.call('GET', reply)
    if not sealed then return {'reply_gone', a, b} end
    return {'replayed', a, b, before[3], before[4], reads, sealed}
  end
end

local held, own, standing, by_counter, others = held_of(holds, client, now)
if standing >= most then return {'crowded', a, b} end
-- The limit that binds, what calls in progress hold of it, and when it starts again.
local room, refusal, open, ends = paid_of(balance) - held, 'insufficient_credits', held, now
local month, month_ends = month_of(now)
local ceiling, spent = given[6] and tonumber(given[6]), in_period(given[7], given[8], month)
if ceiling and ceiling - spent - own < room then
  room, refusal, open, ends = ceiling - spent - own, 'app_spend_limit', own, month_ends
end
if person_day > 0 then
  --- @include "daily"
  local today = day_of(now)
  local left = person_day - spent_on(balance, today) - held
  if left < room then room, refusal, open, ends = left, 'person_spend_limit', held, (today + 1) * DAY_MS end
end
-- A delegated token spends of its own part, and of everything above it.
if chain then
  local own_row = redis.call('HMGET', family, 'used', 'budget:credits', 'budget:llm-inference')
  table.insert(chain, 1, {family_id, own_row[1], own_row[2], own_row[3]})
end
local counters = {}
if chain or given[9] or given[11] then
  --- @include "budgets"
  local rooms
  counters, rooms = rooms_of({given[9], given[10], given[11], given[12]}, chain or {}, by_counter, model, now)
  for _, budget in ipairs(rooms) do
    if budget.barred then return {'model_not_allowed', a, b} end
    if budget.left < room then room, refusal, open, ends = budget.left, 'budget_exhausted', budget.open, budget.ends end
  end
end

-- A limit may have been lowered below what is spent; free calls still have room.
local tokens, amount = fit(math.max(room, 0) - fee, input, output, least, input_price, output_price)
if amount and amount + fee > 0 and leasing == '1' then
  --- @include "daily"
  local day, left, on_lease = lease_of(lease, day_of(now), now)
  if amount + fee > left then
    if day ~= final then return {'lease', a, b, day, amount + fee - left} end
    room, refusal, open, ends = left, 'app_day_limit', on_lease, (day + 1) * DAY_MS
    tokens, amount = fit(room - fee, input, output, least, input_price, output_price)
  end
end
if not amount then
  if refusal == 'insufficient_credits' then return {refusal, a, b} end
  -- Calls in progress give back what they don't use.
  local enough = cost_of(input, math.min(least, output), input_price, output_price) + fee <= room + open
  if refusal == 'app_day_limit' then return {refusal, a, b, enough and 2 or math.ceil((ends - now) / 1000)} end
  if refusal == 'budget_exhausted' then
    return {refusal, a, b, enough and 2 or math.ceil(math.max(ends - now, 0) / 1000)}
  end
  local notices, to = {}, {}
  if mails == '1' and not enough then
    --- @include "notices"
    notices, to = notice_of_refusal(user, grant, balance, refusal, ceiling, person_day, now)
  end
  return {refusal, a, b, enough and 2 or math.ceil((ends - now) / 1000), notices, to}
end
amount = amount + fee
write_hold(holds, hold, amount, now + hold_ttl, client, counters, others)
if amount > 0 and leasing == '1' then redis.call('HSET', lease, hold, int(amount) .. ' ' .. int(now + hold_ttl)) end
if digests ~= '' then
  redis.call('HSET', idem, 'digest', string.match(digests, '^%S+'), 'state', 'running', 'hold', hold)
  redis.call('PEXPIREAT', idem, int(now + hold_ttl))
end
return {'held', a, b, tokens, amount, reads}
