-- From here on the script may write in a full store: the first write decides, and this one takes no memory and changes
-- nothing. For the branch of a script that ends something; where all of a script may, its header says `@reserve`.
local function use_reserve(key)
  redis.call('PEXPIREAT', key, '1', 'GT')
end
