--- Note in the trail of a person, whose session must be live, what is about to be done with an app of theirs.
--- Where `proof` is given, the person must have confirmed who they are; a confirmation is good for several changes.
--- KEYS[1] user
--- KEYS[2] session
--- KEYS[3] audit
--- KEYS[4] factors
--- KEYS[5] passkeys
--- ARGV[1] event
--- ARGV[2] client
--- ARGV[3] idle: ms
--- ARGV[4] proof: ms that a confirmation is good for, or empty where none is demanded
--- ARGV[5] address
--- ARGV[6] agent
--- @reply signed_out
--- @reply unproved
--- @reply ok
--- @reserve
--- @include "session"
--- @include "audit"
--- @include "factors"
local user, session, audit, factors, passkeys = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local event, client, idle, proof = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local address, agent = ARGV[5], ARGV[6]

local now = now_ms()
if not live_session(user, session, idle, now) then return {'signed_out'} end
if proof and not proved(session, factors, passkeys, proof, now) then return {'unproved'} end
record(audit, event, client, address, agent)
return {'ok'}
