"""Layouts of PHP and Ruby."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check
from webdyno.systems.layouts.app import FOR_MEASURING

BUNDLE = "bundle config set --local path .bundle && bundle install --quiet"
PUMA = "puma --bind tcp://127.0.0.1:$PORT config.ru"
RAILS = {"Gemfile": 'gem "rails"\n', "config.ru": "run Rails.application\n"}

CASES = {
    "Rails with Thruster and a line that ends": Case(
        {
            "Procfile": "release: bin/rails db:migrate\nweb: bundle exec thrust bin/rails server\n",
            **RAILS,
        },
        "HTTP_PORT=$PORT TARGET_PORT=$((PORT + 32768)) bundle exec thrust bin/rails server",
        BUNDLE,
        says=("`release` of Procfile runs before it starts", "Thruster listens on HTTP_PORT"),
        environment={"RAILS_ENV": "production"},
        others={"prepare": "bin/rails db:migrate"},
    ),
    "Rails": Case(
        {
            **RAILS,
            "app/assets/x.css": "",
            "config/database.yml": "default:\n  adapter: sqlite3\n\nproduction:\n  sqlite3\n",
            "config/credentials.yml.enc": "",
            "config/routes.rb": '  root "a#b"\n  get "up" => "x"\n  resources :items\n',
        },
        f"bundle exec {PUMA}",
        f"{BUNDLE} && bin/rails assets:precompile",
        ("/", "/up", "/items"),
        ("RAILS_ENV is production", "Git ignores config/master.key"),
        {"RAILS_ENV": "production", "SECRET_KEY_BASE": FOR_MEASURING},
        {"prepare": "bin/rails db:prepare"},
    ),
    "Rails with PostgreSQL and Redis": Case(
        {
            **RAILS,
            "Gemfile": 'gem "rails"\ngem "pg"\ngem "redis"\n',
            "config/database.yml": "test:\n  adapter: sqlite3\n\nproduction:\n  adapter: pg\n",
            "config/cable.yml": "url: <%= ENV.fetch('REDIS_URL') %>\n",
        },
        f"bundle exec {PUMA}",
        BUNDLE,
        others={
            "services": {"db": "postgresql", "cache": "redis"},
            "setup": "bin/rails db:prepare",
            "prepare": None,
        },
    ),
    "Rails with namespaces, and a client that npm builds": Case(
        {
            **RAILS,
            "Gemfile": 'gem "rails"\n',
            "package.json": {"scripts": {"build": "x", "postinstall": "npm run build"}},
            "config/environments/production.rb": "  config.force_ssl = true\n",
            "config/routes.rb": "  namespace :api do\n    get '/data', to: 'a#b'\n"
            "    resources :dogs do\n      get :bark\n      get 'tail'\n    end\n  end\n"
            "  scope '/v1' do\n    resources :cats\n  end\n  get 'up'\n",
        },
        f"bundle exec {PUMA}",
        f"{BUNDLE} && npm install --no-audit --no-fund --loglevel=error",
        ("/api/data", "/up", "/api/dogs", "/v1/cats"),
        others={"headers": {"X-Forwarded-Proto": "https"}},
    ),
    "Rack": Case(
        {"config.ru": "case x\nwhen '/items' then 1\nend\n"},
        PUMA,
        environment={"RACK_ENV": "production"},
    ),
    "Sinatra": Case(
        {"app.rb": "require 'sinatra'\nget('/') { 1 }\n", "Gemfile": 'gem "sinatra"\n'},
        "bundle exec ruby app.rb -p $PORT -o 127.0.0.1 -e production",
        BUNDLE,
    ),
    "Laravel": Case(
        {
            "composer.json": {"require": {"php": "^8", "laravel/framework": "^12"}},
            "package.json": {"scripts": {"dev": "vite", "build": "vite build"}},
            "public/index.php": "",
            ".env.example": "DB_CONNECTION=sqlite\n",
            "config/database.php": "'sqlite', env('DB_URL'), env('DB_HOST'), env('REDIS_URL')\n",
        },
        "PHP_CLI_SERVER_WORKERS=$(nproc) php artisan serve --no-reload --host=127.0.0.1 "
        "--port=$PORT",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader"
        " && cp -n .env.example .env && touch database/database.sqlite",
        says=("in production PHP-FPM is behind nginx",),
        environment={"APP_ENV": "production", "APP_DEBUG": "false"},
        others={"prepare": "php artisan migrate --force"},
    ),
    "Laravel with a database server, whose seeds need what only developers get": Case(
        {
            "composer.json": {"require": {"laravel/framework": "^12"}},
            "public/index.php": "",
            ".env.docker.example": "DB_CONNECTION=pgsql\n",
            "config/database.php": "env('DB_URL'), env('DB_HOST'), 'sqlite'",
            "database/seeders/DatabaseSeeder.php": "User::factory(10)->create();",
        },
        "DB_CONNECTION=pgsql DB_DATABASE=$DB_NAME DB_USERNAME=$DB_USER "
        "PHP_CLI_SERVER_WORKERS=$(nproc) php artisan serve --no-reload --host=127.0.0.1 "
        "--port=$PORT",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader"
        " && cp -n .env.docker.example .env",
        others={
            "services": {"db": "postgresql"},
            "setup": "export DB_CONNECTION=pgsql DB_DATABASE=$DB_NAME DB_USERNAME=$DB_USER && "
            "php artisan migrate --force",
        },
    ),
    "PHP without packages, with a database that files of SQL fill": Case(
        {
            "composer.json": {"require": {"php": ">=8.1", "ext-pdo_mysql": "*"}},
            "public/index.php": "<?php $router->get('/entries', f);",
            "src/Database.php": "<?php new PDO('mysql:host=' . getenv('DB_HOST'));"
            " getenv('DB_USERNAME');",
            "database/schema.sql": "",
            "database/seed.sql": "",
        },
        "DB_USERNAME=$DB_USER PHP_CLI_SERVER_WORKERS=$(nproc) php -S 127.0.0.1:$PORT -t public "
        "public/index.php",
        others={
            "services": {"db": "mariadb"},
            "setup": "export DB_USERNAME=$DB_USER && mariadb --user=$MYSQL_USER $MYSQL_DATABASE "
            "<database/schema.sql && mariadb --user=$MYSQL_USER $MYSQL_DATABASE "
            "<database/seed.sql",
        },
    ),
    "Symfony": Case(
        {
            "composer.json": {"require": {"symfony/framework-bundle": "7.*"}},
            "public/index.php": "",
        },
        "PHP_CLI_SERVER_WORKERS=$(nproc) php -S 127.0.0.1:$PORT -t public public/index.php",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader",
        environment={"APP_ENV": "prod"},
    ),
    "Symfony whose pages ask for files that a build makes": Case(
        {
            "composer.json": {
                "require": {"symfony/framework-bundle": "7.*", "symfony/asset-mapper": "7.*"}
            },
            "public/index.php": "",
        },
        "PHP_CLI_SERVER_WORKERS=$(nproc) php -S 127.0.0.1:$PORT -t public public/index.php",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader && "
        "php bin/console asset-map:compile",
    ),
    "Symfony with Doctrine, whose address each developer keeps": Case(
        {
            "composer.json": {
                "require": {"symfony/framework-bundle": "8.*", "doctrine/doctrine-bundle": "3"}
            },
            ".env": "APP_ENV=dev\n# DATABASE_URL=sqlite:///x\n",
            "compose.yaml": "services:\n  mail:\n    image: mailpit\n  db:\n    image: mysql:8\n",
            "public/index.php": "",
        },
        "PHP_CLI_SERVER_WORKERS=$(nproc) php -S 127.0.0.1:$PORT -t public public/index.php",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader",
        others={
            "services": {"db": "mariadb"},
            "setup": "php bin/console doctrine:schema:create --quiet >/dev/null",
        },
    ),
    "Laravel whose pages Vite makes, with its usual database": Case(
        {
            "composer.json": {"require": {"laravel/framework": "^12"}},
            "package.json": {
                "scripts": {"build": "vite build"},
                "devDependencies": {"laravel-vite-plugin": "2"},
            },
            "public/index.php": "",
            "config/database.php": "'default' => env('DB_CONNECTION', 'mysql'),\n",
        },
        "DB_CONNECTION=mysql DB_DATABASE=$DB_NAME DB_USERNAME=$DB_USER "
        "PHP_CLI_SERVER_WORKERS=$(nproc) php artisan serve --no-reload --host=127.0.0.1 "
        "--port=$PORT",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader && "
        "npm install --no-audit --no-fund --loglevel=error && npm run build",
        others={"services": {"db": "mariadb"}},
    ),
    "Symfony with Doctrine": Case(
        {
            "composer.json": {
                "require": {
                    "symfony/framework-bundle": "7.*",
                    "doctrine/doctrine-bundle": "3",
                    "doctrine/doctrine-migrations-bundle": "3",
                }
            },
            "public/index.php": "",
            ".env": 'DATABASE_URL="postgresql://app:app@db:5432/app?serverVersion=16"\n',
            "migrations/Version1.php": "",
        },
        "PHP_CLI_SERVER_WORKERS=$(nproc) php -S 127.0.0.1:$PORT -t public public/index.php",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader",
        others={
            "services": {"db": "postgresql"},
            "setup": "php bin/console doctrine:migrations:migrate --no-interaction >/dev/null",
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_is_known(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])
