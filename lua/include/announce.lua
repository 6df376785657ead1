--- @include "connected"
--- @include "now"
-- What apps are told of: an event goes into the outbox of the shard in the same step as the change it tells of, and the
-- relay takes it from there (store/webhooks/outbox.py). `member` is the person, as the lists of the shard have them; `at` is when
-- it happened, in ms. Servers empty the outbox within a second; the bound holds where none runs for long.
-- `row` is the person's, or what is left of it: what it says of the app tells the relay whom the event names.
local function announce(row, outbox, event, client, member, reason, at)
  redis.call('XADD', outbox, 'MAXLEN', '~', '1000', '*', 'type', event, 'client', client, 'member', member,
    'reason', reason, 'at', int(at), 'entered', redis.call('HGET', row, app_field(client)) or '')
end
