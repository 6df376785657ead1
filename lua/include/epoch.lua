-- Every token of the pair dies at once: none was born in the fresh epoch (SPEC 3.1).
local function kill_pair(grant, fresh_epoch)
  redis.call('HSET', grant, 'epoch', fresh_epoch)
end
