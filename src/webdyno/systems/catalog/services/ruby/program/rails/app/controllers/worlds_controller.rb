class WorldsController < ActionController::API
  def show
    render json: World.random
  end

  def index
    render json: Array.new(count) { World.random }
  end

  def update
    # Transactions that lock rows in the same order can't block each other.
    worlds = Array.new(count) { World.random }.sort_by(&:id)
    World.transaction do
      worlds.each { |world| world.update!(randomnumber: World.random_number) }
    end
    render json: worlds
  end

  private

  def count
    params[:queries].to_s[/\A-?\d+\z/].to_i.clamp(1, 500)
  end
end
