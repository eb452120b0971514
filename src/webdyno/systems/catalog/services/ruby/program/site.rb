# What the programs share, whatever serves it: the database's rows and the rules of each site.

require 'connection_pool'
require 'digest'
require 'json'
require 'pg'
require 'set'

module Site
  class NotFound < StandardError; end
  class Invalid < StandardError; end

  # The number of queries that a request asks for: from 1 to 500.
  def self.count(text)
    text.to_s[/\A-?\d+\z/].to_i.clamp(1, 500)
  end

  def self.page(text)
    text.to_s[/\A-?\d+\z/].to_i.clamp(1, 2**31 - 1)
  end

  def self.random
    rand(1..10_000)
  end

  def self.upload(body)
    hash = Digest::SHA256.new
    bytes = 0
    while (chunk = body.read(65_536))
      hash << chunk
      bytes += chunk.bytesize
    end
    { bytes: bytes, sha256: hash.hexdigest }
  end

  # Name and price of an item that a client sent.
  def self.received(body)
    item = JSON.parse(body)
    raise Invalid, 'not a JSON object' unless item.is_a?(Hash)

    name, price = item.values_at('name', 'price')
    raise Invalid, 'name must have 1 to 100 characters' unless name.is_a?(String) && name.length.between?(1, 100)
    raise Invalid, 'price must be a whole number, 0 or more' unless price.is_a?(Integer) && price.between?(0, 2**31 - 1)

    [name, price]
  rescue JSON::ParserError
    raise Invalid, 'not JSON'
  end

  def self.id(text)
    id = text[/\A\d+\z/].to_i
    id.between?(1, 2**31 - 1) ? id : raise(NotFound, 'not found')
  end
end
