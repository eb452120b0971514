# frozen_string_literal: true

# Reads and writes the database's tables; connections are made as soon as somebody asks.
module Store
  PER_PAGE = 20

  # Prepares each statement once.
  class Connection
    def initialize
      @postgresql = PG.connect(ENV.fetch('DATABASE_URL'))
      @postgresql.type_map_for_results = TYPES
      @prepared = Set.new
    end

    def rows(statement, *values)
      unless @prepared.include?(statement)
        @postgresql.prepare(statement, STATEMENTS.fetch(statement))
        @prepared << statement
      end
      @postgresql.exec_prepared(statement, values).values
    end

    def transaction(&changes)
      @postgresql.transaction(&changes)
    end
  end

  # By name: strings in the connection's encoding, since the pg gem may free what it made of others
  # before it is sent (https://github.com/ged/ruby-pg/issues/705). Symbols are in another one.
  STATEMENTS = {
    'world' => 'SELECT id, randomnumber FROM world WHERE id = $1',
    'update_world' => 'UPDATE world SET randomnumber = $2 WHERE id = $1',
    'fortunes' => 'SELECT id, message FROM fortune',
    'count' => 'SELECT count(*) FROM item',
    'items' => 'SELECT id, name, price, version FROM item ORDER BY id LIMIT $1 OFFSET $2',
    'item' => 'SELECT id, name, price, version FROM item WHERE id = $1',
    'add' => 'INSERT INTO item (name, price) VALUES ($1, $2) RETURNING id, name, price, version',
    'update' => <<~SQL,
      UPDATE item SET name = $2, price = $3, version = version + 1 WHERE id = $1
      RETURNING id, name, price, version
    SQL
    'delete' => 'DELETE FROM item WHERE id = $1 RETURNING id'
  }.freeze

  # Columns of these types become numbers; PG::BasicTypeMapForResults asks the database for all types.
  TYPES = PG::TypeMapByOid.new
  { int4: 23, int8: 20 }.each { |name, oid| TYPES.add_coder(PG::TextDecoder::Integer.new(name: name.to_s, oid: oid)) }

  POOL = ConnectionPool.new(size: Integer(ENV.fetch('DB_POOL'))) { Connection.new }

  class << self
    def world
      POOL.with { |connection| read_world(connection) }
    end

    def worlds(count)
      POOL.with { |connection| Array.new(count) { read_world(connection) } }
    end

    def update_worlds(count)
      POOL.with do |connection|
        # Transactions that lock rows in the same order can't block each other.
        worlds = Array.new(count) { read_world(connection) }.sort_by { |world| world[:id] }
        connection.transaction do
          worlds.each do |world|
            world[:randomNumber] = Site.random
            connection.rows('update_world', *world.values)
          end
        end
        worlds
      end
    end

    # Ids and messages, with an additional one, sorted.
    def fortunes
      [*rows('fortunes'), [0, 'Additional fortune added at request time.']].sort_by(&:last)
    end

    def items(page)
      total = rows('count')[0][0]
      items = rows('items', PER_PAGE, (page - 1) * PER_PAGE).map { |row| to_item(row) }
      { page: page, pages: (total + PER_PAGE - 1) / PER_PAGE, total: total, items: items }
    end

    def item(id)
      to_item(one('item', id))
    end

    def add(name, price)
      to_item(one('add', name, price))
    end

    def update(id, name, price)
      to_item(one('update', id, name, price))
    end

    def delete(id)
      one('delete', id)
    end

    private

    def read_world(connection)
      id, number = connection.rows('world', Site.random).first
      { id: id, randomNumber: number }
    end

    def rows(statement, *values)
      POOL.with { |connection| connection.rows(statement, *values) }
    end

    def one(statement, *values)
      rows(statement, *values).first or raise Site::NotFound, 'not found'
    end

    def to_item(row)
      %i[id name price version].zip(row).to_h
    end
  end
end
