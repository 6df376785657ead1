--- Add to the sum of hosted documents in an owner's row, or replace the sum with a count.
--- KEYS[1] user: the owner
--- ARGV[1] documents (number): more, or fewer
--- ARGV[2] bytes (number): the same
--- ARGV[3] again (number): ms until the next full count
--- ARGV[4] counted: '1' if these are a full count, or empty
--- ARGV[5] since: the sum in the row when that count began, or empty
--- @reply gone
--- @reply ok documents bytes due
--- @reserve
--- @include "now"

if redis.call('HEXISTS', user, 'status') == 0 then return {'gone'} end
local now = now_ms()
local had, held, at = string.match(redis.call('HGET', user, 'hosted') or '', '^(%d+) (%d+) (%d+)$')
if had and counted ~= '' then
  local had_then, held_then, at_then = string.match(since, '^(%d+) (%d+) (%d+)$')
  -- Another count began or ended during this one and sets the sum; adding the difference would count twice.
  if at ~= at_then then return {'ok', int(had), int(held), ''} end
  -- The count may have missed what processes added during it.
  documents, bytes = documents + had - had_then, bytes + held - held_then
elseif had then
  documents, bytes = had + documents, held + bytes
end
documents, bytes = math.max(0, documents), math.max(0, bytes)
-- One process counts: the first that gets this answer.
local due = counted == '' and (not at or now - tonumber(at) >= again or now < tonumber(at))
if due or counted ~= '' then at = int(now) end
redis.call('HSET', user, 'hosted', int(documents) .. ' ' .. int(bytes) .. ' ' .. at)
return {'ok', int(documents), int(bytes), due and '1' or ''}
