-- Ends every token of the pair at once, because none has the fresh epoch (SPEC 3.1).
local function kill_pair(grant, fresh_epoch)
  redis.call('HSET', grant, 'epoch', fresh_epoch)
end
