# The sites on Sinatra.

require_relative '../date'
require_relative '../site'
require_relative '../store'
require_relative 'app'

use Site::Date
run App
