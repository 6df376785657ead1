--- Read a link that takes an account back, for its page; does not use it up.
--- KEYS[1] user
--- KEYS[2] undos
--- ARGV[1] undo_id
--- @reply over
--- @reply used email
--- @reply ok email at
--- @idempotent
--- @include "now"
--- @include "undo"

local person = redis.call('HMGET', user, 'status', 'email')
local entry = open_undos(undos, now_ms())[undo_id]
if not entry or person[1] ~= 'active' then return {'over'} end
if entry.used then return {'used', person[2]} end
return {'ok', person[2], int(entry.at)}
