class FortunesController < ActionController::Base
  def index
    additional = Fortune.new(id: 0, message: 'Additional fortune added at request time.')
    @fortunes = [*Fortune.all, additional].sort_by(&:message)
  end
end
