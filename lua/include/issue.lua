--- @include "now"
-- Writes a family at `generation` and the access token of that generation. The lifetimes are in ms. An access token
-- has the epoch of its family, and a scope of its own only where it is narrower: '1' stands for the family's, since
-- small numbers are shared and take no memory of their own.
local function issue_tokens(family, access, generation, family_scope, access_scope, epoch, refresh_ttl, access_ttl, now)
  redis.call('HSET', family, 'generation', int(generation), 'scope', family_scope, 'epoch', epoch)
  redis.call('PEXPIREAT', family, int(now + refresh_ttl))
  redis.call('SET', access, access_scope ~= family_scope and access_scope or '1', 'PXAT', int(now + access_ttl))
end
