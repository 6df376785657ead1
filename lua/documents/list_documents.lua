--- List a page of a collection in id order, with the documents if requested. (SPEC 4.6)
--- KEYS[1] user
--- KEYS[2] grant
--- KEYS[3] family
--- KEYS[4] access
--- KEYS[5] window
--- KEYS[6] docs
--- KEYS[7] meta
--- KEYS[8] index
--- ARGV[1] needed: the token must carry one of these scopes
--- ARGV[2] limit (number)
--- ARGV[3] period (number): ms
--- ARGV[4] first: the first name of the range
--- ARGV[5] after: the last name of the previous page, or empty
--- ARGV[6] past: the first name after the range
--- ARGV[7] most (number): rows of a page
--- ARGV[8] max_bytes (number): a page with documents ends with the one that exceeds this; 0 lists without them
--- ARGV[9] proof: of the key that the token is bound to, or empty
--- @reply invalid_token
--- @reply app_paused
--- @reply insufficient_scope
--- @reply rate_limited reset retry
--- @reply proof_used
--- @reply ok remaining reset more rows
--- @derives proof
--- @reserve
--- @include "guard"
--- @include "documents"

local word, a, b = admit(user, grant, family, access, window, needed, limit, period, now_ms(), proof)
if word ~= 'ok' then return {word, a, b} end
local rows, more = rows_of(docs, meta, index, first, after, past, most, max_bytes)
return {'ok', a, b, more, rows}
