class ItemsController < ActionController::API
  PER_PAGE = 20

  wrap_parameters false

  def index
    page = params[:page].to_s[/\A-?\d+\z/].to_i.clamp(1, 2**31 - 1)
    total = Item.count
    items = Item.order(:id).limit(PER_PAGE).offset((page - 1) * PER_PAGE)
    render json: { page: page, pages: (total + PER_PAGE - 1) / PER_PAGE, total: total, items: items }
  end

  def show
    item = find
    tag = %("#{item.version}")
    headers['ETag'] = tag
    return head :not_modified if request.headers['If-None-Match'] == tag

    render json: item
  end

  def create
    item = Item.create!(received)
    render json: item, status: :created, location: "/items/#{item.id}"
  end

  def update
    item = find
    Item.transaction do
      item.lock!
      item.update!(version: item.version + 1, **received)
    end
    render json: item
  end

  def destroy
    find.destroy!
    head :no_content
  end

  private

  def find
    Item.find(Integer(params[:id], 10, exception: false))
  end

  def received
    { name: params[:name], price: params[:price] }
  end
end
