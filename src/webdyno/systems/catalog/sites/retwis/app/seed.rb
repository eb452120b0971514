# Fills an empty Redis with people, who follows whom, and posts: the same each time.
require_relative 'store'

START = 1_700_000_000
NAMES = %w[ada bob cleo dan eve finn gus hal ivy jan kim leo mia ned ola pia quinn ron sue tom] +
        (21..40).map { |number| "person#{number}" }

store = Store.mine
draw = Random.new(1)
NAMES.each { |name| store.sign_up(name, "password of #{name}", START) }
NAMES.each do |reader|
  (NAMES - [reader]).sample(12, random: draw).each { |author| store.follow(reader, author) }
end
400.times do |number|
  author = NAMES.sample(random: draw)
  store.write(author, "This is post number #{number} and #{author} wrote it.", START + number * 60)
end
