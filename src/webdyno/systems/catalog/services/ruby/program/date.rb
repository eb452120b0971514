require 'time'

module Site
  # Puma and Rack leave the date of responses to their users.
  class Date
    def initialize(app)
      @app = app
    end

    def call(env)
      status, headers, body = @app.call(env)
      headers['Date'] = Time.now.httpdate
      [status, headers, body]
    end
  end
end
