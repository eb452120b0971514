redis.call('SELECT', 0)
redis.call('FLUSHDB')
redis.call('SELECT', 15)
for _, key in ipairs(redis.call('KEYS', '*')) do
    redis.call('COPY', key, key, 'DB', 0)
end
