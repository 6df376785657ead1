-- From here on the script may write in a full store: the first write decides, and this one takes no memory and changes
-- nothing. For a script's branch that ends something; a script that may always write has `@reserve` in its header.
local function use_reserve(key)
  redis.call('PEXPIREAT', key, '1', 'GT')
end
