#!/bin/sh
# Rails with PostgreSQL: a Git repository of three revisions, in FOLDER or ./rails-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" rails-app

mkdir -p app/controllers app/models bin config/environments db/migrate
cat >Gemfile <<'EOF'
source "https://rubygems.org"

gem "rails", ">= 6.1", "< 9"
gem "pg", "~> 1.1"
gem "puma", ">= 5.0"
EOF
cat >config.ru <<'EOF'
require_relative "config/environment"

run Rails.application
EOF
cat >Rakefile <<'EOF'
require_relative "config/application"

Rails.application.load_tasks
EOF
cat >bin/rails <<'EOF'
#!/usr/bin/env ruby
APP_PATH = File.expand_path("../config/application", __dir__)
require_relative "../config/boot"
require "rails/commands"
EOF
chmod +x bin/rails
cat >config/boot.rb <<'EOF'
ENV["BUNDLE_GEMFILE"] ||= File.expand_path("../Gemfile", __dir__)

require "bundler/setup"
EOF
cat >config/application.rb <<'EOF'
require_relative "boot"

require "rails"
require "active_record/railtie"
require "action_controller/railtie"

Bundler.require(*Rails.groups)

module Shop
  class Application < Rails::Application
    config.load_defaults 6.1
    config.api_only = true
  end
end
EOF
cat >config/environment.rb <<'EOF'
require_relative "application"

Rails.application.initialize!
EOF
cat >config/environments/production.rb <<'EOF'
Rails.application.configure do
  config.cache_classes = true
  config.eager_load = true
  config.consider_all_requests_local = false
  config.log_level = :info
end
EOF
cat >config/database.yml <<'EOF'
default: &default
  adapter: postgresql
  encoding: unicode
  pool: <%= ENV.fetch("RAILS_MAX_THREADS", 5) %>

development:
  <<: *default
  database: shop_development

production:
  <<: *default
  url: <%= ENV["DATABASE_URL"] %>
EOF
cat >config/puma.rb <<'EOF'
threads_count = ENV.fetch("RAILS_MAX_THREADS", 5)
threads threads_count, threads_count
port ENV.fetch("PORT", 3000)
EOF
cat >config/routes.rb <<'EOF'
Rails.application.routes.draw do
  root "items#index"
  resources :items, only: %i[index show]
end
EOF
cat >app/controllers/application_controller.rb <<'EOF'
class ApplicationController < ActionController::API
end
EOF
cat >app/controllers/items_controller.rb <<'EOF'
class ItemsController < ApplicationController
  def index
    items = Item.includes(:maker).order(:id).limit(50)
    render json: items.map { |item| { id: item.id, name: item.name, maker: item.maker.name } }
  end

  def show
    render json: Item.find(params[:id])
  end
end
EOF
cat >app/models/application_record.rb <<'EOF'
class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
end
EOF
cat >app/models/maker.rb <<'EOF'
class Maker < ApplicationRecord
  has_many :items
end
EOF
cat >app/models/item.rb <<'EOF'
class Item < ApplicationRecord
  belongs_to :maker
end
EOF
cat >db/migrate/20250101000000_create_shop.rb <<'EOF'
class CreateShop < ActiveRecord::Migration[6.1]
  def change
    create_table(:makers) { |table| table.string :name, null: false }
    create_table :items do |table|
      table.string :name, null: false
      table.references :maker, null: false, foreign_key: true
    end
  end
end
EOF
cat >db/seeds.rb <<'EOF'
50.times do |number|
  Item.create!(name: "Item #{number}", maker: Maker.create!(name: "Maker #{number}"))
end
EOF
printf '%s\n' .bundle/ log/ tmp/ >.gitignore
echo "A small shop: /items." >README.md
revision start "A small shop"
documented

sed -i 's/Item.includes(:maker).order/Item.order/' app/controllers/items_controller.rb
revision slower "Items: a simpler query"
ready "the list of items asks for each maker by itself"
