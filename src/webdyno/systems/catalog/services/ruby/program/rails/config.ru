# The sites on Rails.

require_relative 'config/application'
require_relative '../date'

Application.initialize!
use Site::Date
run Application
