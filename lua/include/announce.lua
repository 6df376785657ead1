--- @include "now"
-- What apps are told of: an event goes into the outbox of the shard in the same step as the change it tells of, and the
-- relay takes it from there (store/outbox.py). `member` is the person, as the lists of the shard have them; `at` is when
-- it happened, in ms. Servers empty the outbox within a second; the bound holds where none runs for long.
local function announce(outbox, event, client, member, reason, at)
  redis.call('XADD', outbox, 'MAXLEN', '~', '1000', '*', 'type', event, 'client', client, 'member', member,
    'reason', reason, 'at', int(at))
end
