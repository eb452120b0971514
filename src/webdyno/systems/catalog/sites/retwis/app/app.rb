require 'sinatra/base'
require_relative 'store'

class Retwis < Sinatra::Base
  NAME = /\A[a-z0-9_]{2,20}\z/
  LONGEST = 140

  set :environment, :production
  set :views, File.join(__dir__, 'views')
  disable :protection, :sessions, :logging, :static

  helpers do
    def store
      Store.mine
    end

    def me
      @me ||= store.name_of(request.cookies['session'])
    end

    def demand_me
      me || halt(redirect(to('/sign-in')))
    end

    def h(text)
      Rack::Utils.escape_html(text)
    end

    def refuse(message)
      halt 400, erb(:refusal, locals: { message: message })
    end
  end

  get('/') { erb :posts, locals: { title: 'Latest posts', posts: store.posts('posts') } }

  get '/home' do
    erb :posts, locals: { title: 'Home', posts: store.posts("home:#{demand_me}") }
  end

  get '/people/:name' do |name|
    halt 404, erb(:refusal, locals: { message: 'Nobody has that name.' }) unless store.person?(name)
    following, followers = store.counts(name)
    erb :person, locals: { name: name, posts: store.posts("posts:#{name}"),
                           following: following, followers: followers }
  end

  get('/sign-in') { erb :sign_in }

  post '/sign-up' do
    name, password = params.values_at('name', 'password')
    refuse 'A name has 2 to 20 letters and digits.' unless NAME.match?(name.to_s)
    refuse 'A password has at least 8 characters.' if password.to_s.length < 8
    refuse 'That name is taken.' unless store.sign_up(name, password, Time.now.to_i)
    open_session(name, password)
  end

  post('/sign-in') { open_session(*params.values_at('name', 'password').map(&:to_s)) }

  post '/posts' do
    text = params['text'].to_s.strip
    refuse "A post has 1 to #{LONGEST} characters." unless text.length.between?(1, LONGEST)
    store.write(demand_me, text, Time.now.to_i)
    redirect to('/home')
  end

  post '/people/:name/follow' do |name|
    halt 404 unless store.person?(name)
    store.follow(demand_me, name)
    redirect to("/people/#{name}")
  end

  post '/people/:name/unfollow' do |name|
    store.unfollow(demand_me, name)
    redirect to("/people/#{name}")
  end

  private

  def open_session(name, password)
    token = store.sign_in(name, password)
    refuse 'Name or password is wrong.' unless token
    response.set_cookie('session', value: token, path: '/', httponly: true, same_site: :lax)
    redirect to('/home')
  end
end
