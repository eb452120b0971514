#!/bin/sh
# Rack under puma: a Git repository of three revisions, in FOLDER or ./rack-app.
# Needs ruby-rack and puma of the distribution (apt-get install puma).
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" rack-app

cat >config.ru <<'EOF'
# A small shop.
require 'json'

ITEMS = (0...50).map { |number| { id: number, name: "item #{number}" } }

def reply(value)
  [200, { 'content-type' => 'application/json' }, [JSON.generate(value)]]
end

def search
  reply(ITEMS.select { |item| item[:name].include?('7') })
end

run lambda { |env|
  case env['PATH_INFO']
  when '/' then reply({ shop: 'open' })
  when '/items' then reply(ITEMS)
  when '/search' then search
  else [404, { 'content-type' => 'text/plain' }, ['there is no such page']]
  end
}
EOF
echo "A small shop: /, /items, /search." >README.md
revision start "A small shop"
documented

cat >rank.rb <<'EOF'
# Takes 300 µs of CPU time.
def rank
  finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 300e-6
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
end
EOF
sed -i -e "s/^require 'json'/&\nrequire_relative 'rank'/" -e '/^def search/a\  rank' config.ru
revision slower "Search: ranked results"
ready
