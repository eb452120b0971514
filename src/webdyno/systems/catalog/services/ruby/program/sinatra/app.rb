require 'sinatra/base'
require 'tilt/erubi'

class App < Sinatra::Base
  set :views, File.expand_path('..', __dir__)
  set :erb, escape_html: true

  helpers do
    def json(value)
      content_type :json
      JSON.generate(value)
    end
  end

  error Site::NotFound do |error|
    status 404
    json(error: error.message)
  end

  error Site::Invalid do |error|
    status 400
    json(error: error.message)
  end

  get '/plaintext' do
    content_type 'text/plain'
    'Hello, World!'
  end

  get '/json' do
    json(message: 'Hello, World!')
  end

  post '/upload' do
    json(Site.upload(request.body))
  end

  get '/db' do
    json(Store.world)
  end

  get '/queries' do
    json(Store.worlds(Site.count(params['queries'])))
  end

  get '/updates' do
    json(Store.update_worlds(Site.count(params['queries'])))
  end

  get '/fortunes' do
    erb :fortunes, locals: { fortunes: Store.fortunes }
  end

  get '/items' do
    json(Store.items(Site.page(params['page'])))
  end

  get '/items/:id' do |id|
    item = Store.item(Site.id(id))
    etag item[:version].to_s
    json(item)
  end

  post '/items' do
    item = Store.add(*Site.received(request.body.read))
    status 201
    headers 'Location' => "/items/#{item[:id]}"
    json(item)
  end

  put '/items/:id' do |id|
    json(Store.update(Site.id(id), *Site.received(request.body.read)))
  end

  delete '/items/:id' do |id|
    Store.delete(Site.id(id))
    204
  end
end
