# What retwis keeps in Redis:
#   person:NAME        hash: password (salted), since
#   posts:last         number of the newest post
#   post:N             hash: author, text, at
#   posts              list of the newest posts' numbers, at most KEPT
#   posts:NAME         the same of one author
#   home:NAME          the same of everybody whom NAME follows
#   following:NAME     set of names
#   followers:NAME     set of names
#   session:TOKEN      name, for a day
require 'openssl'
require 'redis'
require 'securerandom'

class Store
  KEPT = 1000
  SHOWN = 10
  SESSION_S = 86_400

  # One connection for each thread: threads of a server don't wait for each other's answers.
  def self.mine
    Thread.current[:store] ||= new(Redis.new(url: ENV.fetch('REDIS_URL')))
  end

  def initialize(redis)
    @redis = redis
  end

  def person?(name)
    @redis.exists?("person:#{name}")
  end

  def sign_up(name, password, now)
    salt = SecureRandom.hex(8)
    fields = { salt: salt, password: digest(password, salt), since: now }
    @redis.hsetnx("person:#{name}", 'since', now) && @redis.mapped_hmset("person:#{name}", fields)
  end

  def sign_in(name, password)
    salt, kept = @redis.hmget("person:#{name}", 'salt', 'password')
    return unless kept && OpenSSL.fixed_length_secure_compare(digest(password, salt), kept)

    SecureRandom.hex(16).tap { |token| @redis.setex("session:#{token}", SESSION_S, name) }
  end

  def name_of(token)
    token && @redis.get("session:#{token}")
  end

  def write(author, text, now)
    number = @redis.incr('posts:last')
    readers = @redis.smembers("followers:#{author}")
    @redis.pipelined do |pipe|
      pipe.mapped_hmset("post:#{number}", author: author, text: text, at: now)
      ['posts', "posts:#{author}", "home:#{author}", *readers.map { |r| "home:#{r}" }].each do |list|
        pipe.lpush(list, number)
        pipe.ltrim(list, 0, KEPT - 1)
      end
    end
    number
  end

  def posts(list)
    numbers = @redis.lrange(list, 0, SHOWN - 1)
    @redis.pipelined { |pipe| numbers.each { |number| pipe.hgetall("post:#{number}") } }
  end

  def follow(reader, author)
    @redis.multi do |both|
      both.sadd("following:#{reader}", [author])
      both.sadd("followers:#{author}", [reader])
    end
  end

  def unfollow(reader, author)
    @redis.multi do |both|
      both.srem("following:#{reader}", [author])
      both.srem("followers:#{author}", [reader])
    end
  end

  def counts(name)
    @redis.pipelined { |pipe| %w[following followers].each { |set| pipe.scard("#{set}:#{name}") } }
  end

  private

  def digest(password, salt)
    OpenSSL::KDF.pbkdf2_hmac(password, salt: salt, iterations: 1000, length: 32, hash: 'sha256')
               .unpack1('H*')
  end
end
