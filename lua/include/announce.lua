--- @include "connected"
--- @include "now"
-- Writes a webhook event to the outbox of the shard, in the same step as the change. The relay takes it from there
-- (store/webhooks/outbox.py). `member` is the person in the lists of the shard; `at` is when it happened, in ms. Servers
-- empty the outbox within a second; the bound is for a long time without servers. `row` is the person's row, or its rest:
-- its field for the app tells the relay which id of the person the event has.
local function announce(row, outbox, event, client, member, reason, at)
  redis.call('XADD', outbox, 'MAXLEN', '~', '1000', '*', 'type', event, 'client', client, 'member', member,
    'reason', reason, 'at', int(at), 'entered', redis.call('HGET', row, app_field(client)) or '')
end
