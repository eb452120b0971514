Rails.application.routes.draw do
  get 'plaintext', to: 'hello#plaintext'
  get 'json', to: 'hello#json'
  post 'upload', to: 'hello#upload'
  get 'db', to: 'worlds#show'
  get 'queries', to: 'worlds#index'
  get 'updates', to: 'worlds#update'
  get 'fortunes', to: 'fortunes#index'
  resources :items, only: %i[index show create update destroy]
end
