#!/bin/sh
# Sinatra with a login and PostgreSQL: a Git repository of three revisions, in FOLDER or
# ./sinatra-app. Needs the distribution's gems (apt-get install puma ruby-sinatra ruby-pg rake).
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" sinatra-app

mkdir -p views
cat >config.ru <<'EOF'
require_relative 'app'

run Library
EOF
cat >app.rb <<'EOF'
require 'sinatra/base'
require 'pg'
require_relative 'books'
require_relative 'passwords'

# Books, behind a login.
class Library < Sinatra::Base
  enable :sessions
  set :session_secret, ENV.fetch('SESSION_SECRET')
  use Rack::Protection::AuthenticityToken

  helpers do
    def database
      Thread.current[:database] ||= PG.connect(ENV.fetch('DATABASE_URL'))
    end

    def token
      Rack::Protection::AuthenticityToken.token(session)
    end

    def books
      Books.newest(database)
    end
  end

  before do
    redirect '/login' unless session[:user] || request.path_info == '/login'
  end

  get '/login' do
    erb :login
  end

  post '/login' do
    found = database.exec_params('SELECT id, password FROM reader WHERE name = $1', [params[:name]])
    unless found.any? && Passwords.right?(params[:password], found[0]['password'])
      @error = 'Wrong name or password'
      return erb(:login)
    end
    session[:user] = found[0]['id']
    redirect '/'
  end

  post '/logout' do
    session.clear
    redirect '/login'
  end

  get '/' do
    erb :books
  end

  get '/books/new' do
    erb :new
  end

  post '/books' do
    database.exec_params('INSERT INTO book (title, author) VALUES ($1, $2)',
                         [params[:title], params[:author]])
    redirect '/'
  end
end
EOF
cat >books.rb <<'EOF'
# What the database holds.
module Books
  LIST = 'SELECT title, author.name FROM book JOIN author ON author.id = author ' \
         'ORDER BY book.id DESC LIMIT 50'

  def self.newest(database)
    database.exec(LIST).values
  end
end
EOF
cat >passwords.rb <<'EOF'
require 'openssl'
require 'securerandom'

# Passwords as the database keeps them.
module Passwords
  def self.kept(password, salt = SecureRandom.hex(16))
    digest = OpenSSL::KDF.scrypt(password, salt: salt, N: 2**14, r: 8, p: 1, length: 32)
    "#{salt}$#{digest.unpack1('H*')}"
  end

  def self.right?(password, kept)
    OpenSSL.fixed_length_secure_compare(kept(password.to_s, kept.split('$').first), kept)
  end
end
EOF
cat >Rakefile <<'EOF'
require 'pg'
require_relative 'passwords'

namespace :db do
  def database
    @database ||= PG.connect(ENV.fetch('DATABASE_URL'))
  end

  task :migrate do
    database.exec(File.read('schema.sql'))
  end

  task :seed do
    database.exec_params('INSERT INTO reader (name, password) VALUES ($1, $2)',
                         ['reader', Passwords.kept('pages')])
    database.exec("INSERT INTO author (name) SELECT 'Author ' || n FROM generate_series(1, 50) n")
    database.exec("INSERT INTO book (title, author) SELECT 'Book ' || id, id FROM author")
  end
end
EOF
cat >schema.sql <<'EOF'
CREATE TABLE reader (id serial PRIMARY KEY, name text UNIQUE NOT NULL, password text NOT NULL);
CREATE TABLE author (id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE book (id serial PRIMARY KEY, title text NOT NULL, author int NOT NULL REFERENCES author);
EOF
cat >views/layout.erb <<'EOF'
<!doctype html>
<html lang="en">
<title>Library</title>
<% if session[:user] %>
<form method="post" action="/logout">
  <input type="hidden" name="authenticity_token" value="<%= token %>"><button>Log out</button>
</form>
<% end %>
<%= yield %>
</html>
EOF
cat >views/login.erb <<'EOF'
<form method="post">
  <input type="hidden" name="authenticity_token" value="<%= token %>">
  <p><%= @error %></p>
  <input name="name" placeholder="Name"> <input type="password" name="password">
  <button>Log in</button>
</form>
EOF
cat >views/books.erb <<'EOF'
<h1>Your books</h1>
<ul>
<% books.each do |title, author| %>
  <li><%= Rack::Utils.escape_html(title) %>, <%= Rack::Utils.escape_html(author) %></li>
<% end %>
</ul>
<a href="/books/new">Add one</a>
EOF
cat >views/new.erb <<'EOF'
<form method="post" action="/books">
  <input type="hidden" name="authenticity_token" value="<%= token %>">
  <input name="title" placeholder="Title"> <input name="author" placeholder="Author's number">
  <button>Save</button>
</form>
EOF
echo "Books, behind a login: rake db:seed makes the user reader, whose password is pages." >README.md
revision start "A library"
documented "Books are shown fifty at a time."

cat >books.rb <<'EOF'
# What the database holds.
module Books
  LIST = 'SELECT title, author FROM book ORDER BY id DESC LIMIT 50'
  NAME = 'SELECT name FROM author WHERE id = $1'

  def self.newest(database)
    database.exec(LIST).values.map do |title, author|
      [title, database.exec_params(NAME, [author])[0]['name']]
    end
  end
end
EOF
revision slower "Books: authors apart"
ready "the list of books asks for each author by itself"
