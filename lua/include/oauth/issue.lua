--- @include "dpop"
--- @include "now"
-- Writes a family at `generation` and the access token of that generation. The lifetimes are in ms. An access token has the
-- epoch of its family, and its own scope only if that is narrower: '1' means the family's scope, because small numbers are
-- shared and take no extra memory. `row` is what the token's row has if it is not '1', and `row_ttl` how long it lives;
-- `jkt` is the key that the token is bound to, or empty.
-- `lifetime` (ms; 0: none) is how long after its first token a family ends, however often it is rotated; `born` is the time
-- of the first token (ms), or false if unknown. Only a family with a lifetime stores it, to keep other rows small.
-- The row outlives its last refresh token by an access token's lifetime, so that the access token lives as long as the app
-- was promised.
local function issue_tokens(
  family, access, generation, family_scope, row, epoch, refresh_ttl, access_ttl, row_ttl, lifetime, born, now,
  jkt)
  redis.call('HSET', family, 'generation', int(generation), 'scope', family_scope, 'epoch', epoch)
  local ends = now + refresh_ttl
  if lifetime > 0 then
    if not born then
      born = now
      redis.call('HSET', family, 'born', int(born))
    end
    ends = math.min(ends, born + lifetime + access_ttl)
  end
  redis.call('PEXPIREAT', family, int(ends))
  redis.call('SET', access, bound_row(row ~= family_scope and row or '1', jkt), 'PXAT', int(now + row_ttl))
end
