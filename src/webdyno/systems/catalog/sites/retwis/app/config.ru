require_relative 'app'
run Retwis
