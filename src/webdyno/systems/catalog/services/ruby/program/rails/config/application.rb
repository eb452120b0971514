require 'logger'
require 'action_controller/railtie'
require 'active_record/railtie'

class Application < Rails::Application
  config.load_defaults 6.1
  config.root = File.expand_path('..', __dir__)
  config.api_only = true
  config.cache_classes = true
  config.eager_load = true
  config.consider_all_requests_local = false
  config.logger = Logger.new($stderr)
  config.log_level = :fatal
  config.secret_key_base = SecureRandom.hex(64) # nothing is signed by it
  config.action_dispatch.rescue_responses['ActiveRecord::RecordInvalid'] = :bad_request
  # What went wrong, as JSON in place of Rails' pages.
  config.exceptions_app = lambda do |env|
    status = env['PATH_INFO'].delete_prefix('/').to_i
    error = Rack::Utils::HTTP_STATUS_CODES.fetch(status, 'error').downcase
    [status, { 'Content-Type' => 'application/json' }, [{ error: error }.to_json]]
  end
end
