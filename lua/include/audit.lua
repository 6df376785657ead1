-- Appends to the person's audit trail, which keeps the newest 200 events; the entry's id is its time.
local function record(trail, event, client, address, agent)
  redis.call('XADD', trail, 'MAXLEN', '200', '*',
    'event', event, 'client', client, 'address', address, 'agent', agent)
end
