require 'rack'
require 'tilt/erubi'

class App
  PAGE = Tilt::ErubiTemplate.new(File.join(__dir__, '../fortunes.erb'), escape_html: true)

  def call(env)
    answer(Rack::Request.new(env))
  rescue Site::NotFound => e
    json({ error: e.message }, 404)
  rescue Site::Invalid => e
    json({ error: e.message }, 400)
  end

  private

  def answer(request)
    case [request.request_method, request.path_info]
    when ['GET', '/plaintext'] then [200, { 'Content-Type' => 'text/plain' }, ['Hello, World!']]
    when ['GET', '/json'] then json({ message: 'Hello, World!' })
    when ['GET', '/db'] then json(Store.world)
    when ['GET', '/queries'] then json(Store.worlds(Site.count(request.GET['queries'])))
    when ['GET', '/updates'] then json(Store.update_worlds(Site.count(request.GET['queries'])))
    when ['GET', '/fortunes'] then fortunes
    when ['GET', '/items'] then json(Store.items(Site.page(request.GET['page'])))
    when ['POST', '/items'] then add(request)
    when ['POST', '/upload'] then json(Site.upload(request.body))
    else item(request)
    end
  end

  def fortunes
    page = PAGE.render(nil, fortunes: Store.fortunes)
    [200, { 'Content-Type' => 'text/html; charset=utf-8' }, [page]]
  end

  def add(request)
    item = Store.add(*Site.received(request.body.read))
    json(item, 201, 'Location' => "/items/#{item[:id]}")
  end

  def item(request)
    id = Site.id(request.path_info[%r{\A/items/(.*)\z}, 1].to_s)
    case request.request_method
    when 'GET' then find(request, id)
    when 'PUT' then json(Store.update(id, *Site.received(request.body.read)))
    when 'DELETE'
      Store.delete(id)
      [204, {}, []]
    else raise Site::NotFound, 'not found'
    end
  end

  def find(request, id)
    item = Store.item(id)
    tag = %("#{item[:version]}")
    return [304, { 'ETag' => tag }, []] if request.get_header('HTTP_IF_NONE_MATCH') == tag

    json(item, 200, 'ETag' => tag)
  end

  def json(value, status = 200, headers = {})
    [status, headers.merge('Content-Type' => 'application/json'), [JSON.generate(value)]]
  end
end
