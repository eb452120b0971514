class HelloController < ActionController::API
  def plaintext
    render plain: 'Hello, World!'
  end

  def json
    render json: { message: 'Hello, World!' }
  end

  def upload
    hash = Digest::SHA256.new
    bytes = 0
    while (chunk = request.body.read(65_536))
      hash << chunk
      bytes += chunk.bytesize
    end
    render json: { bytes: bytes, sha256: hash.hexdigest }
  end
end
