--- Note a complete re-encryption: every document sealed before `since` is under the front key.
--- KEYS[1] keyring
--- ARGV[1] front: id of the key it sealed with
--- ARGV[2] since: epoch ms
--- @reply ok
--- @idempotent
--- @reserve

redis.call('HSET', keyring, 'documents_front', front, 'documents_since', since)
return {'ok'}
