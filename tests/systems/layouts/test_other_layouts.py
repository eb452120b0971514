"""Layouts of Go, Rust, Java, .NET, Ruby, PHP, Elixir, containers and pages."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check, choices
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.app import FOR_MEASURING

GO = 'package main\nfunc main() { http.HandleFunc("GET /{$}", f); os.Getenv("PORT") }\n'
BUNDLE = "bundle config set --local path .bundle && bundle install --quiet"
PUMA = "puma --bind tcp://127.0.0.1:$PORT config.ru"
SPRING = "<groupId>org.springframework.boot</groupId>"
MAVEN = "--quiet --batch-mode -DskipTests"
RAILS = {"Gemfile": 'gem "rails"\n', "config.ru": "run Rails.application\n"}

CASES = {
    "Procfile": Case(
        {"Procfile": "worker: x\nweb: gunicorn a:b\n", "requirements.txt": "gunicorn\n"},
        ".venv/bin/gunicorn a:b",
        "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt",
        says=("of Procfile only web is started, without worker",),
    ),
    "Procfile of a program in Go": Case(
        {"Procfile": "web: bin/shop\n", "go.mod": "module m\n", "main.go": GO},
        "bin/shop",
        "go build -o bin/shop .",
    ),
    "Procfile that names a program alone": Case(
        {"Procfile": "web: shop -v\n", "go.mod": "module m\n", "main.go": "package main\n"},
        "bin/shop -v",
        "go build -o bin/shop .",
    ),
    "Go with subcommands, and viper in several files": Case(
        {
            "go.mod": "module m\nrequire github.com/spf13/cobra v1\n",
            "main.go": "package main\nfunc main() { cmd.Execute() }\n",
            "cmd/root.go": "package cmd\n// spf13/viper spf13/cobra\nviper.AutomaticEnv()\n",
            "cmd/serve.go": 'package cmd\n// spf13/viper\nviper.SetDefault("port", "3000")\n'
            'var c = &cobra.Command{\n\tUse:   "serve",\n}\n',
            "cmd/migrate.go": 'package cmd\nvar m = &cobra.Command{\n\tUse: "migrate",\n}\n',
        },
        "./server serve",
        "go build -o server .",
        others={"doubts": ()},
    ),
    "Procfile with a fixed port": Case(
        {
            "Procfile": "web: uvicorn main:app --host 0.0.0.0 --port=8000\n",
            "requirements.txt": "uvicorn\n",
        },
        ".venv/bin/uvicorn main:app --host 0.0.0.0 --port=$PORT",
        "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt",
    ),
    "Procfile with several commands": Case(
        {"Procfile": "web: flask db upgrade; gunicorn a:b\n", "requirements.txt": "flask\n"},
        ".venv/bin/flask db upgrade; .venv/bin/gunicorn a:b",
        "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt",
        others={"heeds_port": True, "doubts": ()},
    ),
    "Procfile that fills the database and folders first": Case(
        {
            "Procfile": "web: python manage.py migrate && python manage.py collectstatic --no-input"
            " && gunicorn shop.wsgi\n",
            "requirements.txt": "gunicorn\n",
        },
        ".venv/bin/gunicorn shop.wsgi",
        "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt",
        others={"prepare": ".venv/bin/python manage.py migrate"},
    ),
    "Procfile, whose language's layout knows the migration": Case(
        {
            "Procfile": "web: gunicorn shop:app -b 0.0.0.0:$PORT\n",
            "Pipfile": '[packages]\nFlask = "*"\nFlask-Migrate = "*"\ngunicorn = "*"\n',
            "Pipfile.lock": "{}",
            "shop.py": "from flask import Flask\napp = Flask()\n",
            "migrations/env.py": "",
        },
        ".venv/bin/gunicorn shop:app -b 0.0.0.0:$PORT",
        "PIPENV_VENV_IN_PROJECT=1 pipenv sync",
        others={"prepare": ".venv/bin/flask --app shop:app db upgrade >/dev/null"},
    ),
    "Procfile, whose Gunicorn has a file of its own": Case(
        {
            "Procfile": "web: gunicorn -c conf/gunicorn.py shop:app\n",
            "requirements.txt": "gunicorn\n",
            "conf/gunicorn.py": 'bind = ["0.0.0.0:8000"]\ndaemon = True\n',
        },
        ".venv/bin/gunicorn -c conf/gunicorn.py shop:app --bind 127.0.0.1:$PORT",
        "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt",
        says=("conf/gunicorn.py has daemon = True, which no flag undoes",),
    ),
    "Procfile of Node, whose manager isn't here and whose release migrates": Case(
        {
            "Procfile": "release: npx prisma migrate deploy\nweb: yarn start\n",
            "yarn.lock": "",
            "package.json": '{"dependencies": {"prisma": "5", "pg": "8"}, "prisma": {"seed": "x"},'
            ' "scripts": {"start": "node s.js"}}',
            "prisma/schema.prisma": "",
            "s.js": "process.env.DATABASE_URL; app.listen(process.env.PORT)\n",
        },
        "NODE_ENV=production yarn start",
        "yarn install",
        others={"setup": "npx prisma migrate deploy && npx prisma db seed"},
    ),
    "Procfile, for which Heroku installs requirements.txt": Case(
        {
            "Procfile": "web: gunicorn shop:app\n",
            "requirements.txt": "flask\n",
            "requirements/prod.txt": "flask\n",
        },
        ".venv/bin/gunicorn shop:app",
        "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt"
        " && .venv/bin/python -m pip install --quiet gunicorn",
    ),
    "Spring Boot that reads PORT, by a Procfile": Case(
        {
            "Procfile": "web: java -jar target/x.jar\n",
            "pom.xml": SPRING,
            "src/main/resources/application.properties": "server.port=${PORT:5000}\n",
        },
        "java -jar target/x.jar",
        f"mvn {MAVEN} package",
        others={"doubts": ()},
    ),
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
    "Procfile that has a port of its own unless it is told one": Case(
        {"Procfile": "web: ./serve --port=${PORT:-8080}\n"},
        "./serve --port=${PORT:-8080}",
        others={"doubts": ()},
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
            ".env.example": "DB_CONNECTION=pgsql\n",
            "config/database.php": "env('DB_URL'), env('DB_HOST'), 'sqlite'",
            "database/seeders/DatabaseSeeder.php": "User::factory(10)->create();",
        },
        "DB_CONNECTION=pgsql DB_DATABASE=$DB_NAME DB_USERNAME=$DB_USER "
        "PHP_CLI_SERVER_WORKERS=$(nproc) php artisan serve --no-reload --host=127.0.0.1 "
        "--port=$PORT",
        "composer install --no-progress --no-dev --no-interaction --optimize-autoloader"
        " && cp -n .env.example .env",
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
    "Phoenix": Case(
        {
            "mix.exs": "app: :shop,\n{:phoenix, x}\nassets.deploy\n",
            "config/runtime.exs": 'System.get_env("DATABASE_URL")',
        },
        "_build/prod/rel/shop/bin/shop start",
        "export MIX_ENV=prod && mix deps.get --only prod && mix compile && mix assets.deploy"
        " && mix release --quiet --overwrite",
        says=("config/runtime.exs wants DATABASE_URL", "`mix phx.server` is for development"),
        environment={"PHX_SERVER": "true"},
    ),
    "Phoenix with PostgreSQL and migrations in its release": Case(
        {
            "mix.exs": "app: :shop,\n{:phoenix, x}\n{:postgrex, x}\n",
            "config/runtime.exs": 'System.get_env("DATABASE_URL")',
            "lib/shop/release.ex": "defmodule Shop.Release do\n",
        },
        "_build/prod/rel/shop/bin/shop start",
        "export MIX_ENV=prod && mix deps.get --only prod && mix compile"
        " && mix release --quiet --overwrite",
        others={
            "services": {"db": "postgresql"},
            "setup": "_build/prod/rel/shop/bin/shop eval Shop.Release.migrate",
            "doubts": (),
        },
    ),
    "Go": Case(
        {"go.mod": "module m\n", "cmd/web/main.go": GO}, "./server", "go build -o server ./cmd/web"
    ),
    "Go with several programs": Case(
        {
            "go.mod": "module m\n",
            "cmd/migrate/main.go": "package main\nfunc main() {}\n",
            "cmd/api/main.go": 'package main\nvar a = flag.String("admin", ":9090", "x")\n'
            'var l = flag.String("listen", ":8080", "x")\nfunc main() { s.ListenAndServe() }\n',
        },
        "./server -listen 127.0.0.1:$PORT -admin 127.0.0.1:0",
        "go build -o server ./cmd/api",
        says=(
            "of 2 programs (cmd/api, cmd/migrate) cmd/api is taken: it alone listens",
            "-admin is another listener, on :9090 unless set",
        ),
    ),
    "Gin, which listens on $PORT by itself": Case(
        {"go.mod": "module m\n", "main.go": "package main\nfunc main() { r.Run() }\n"},
        "./server",
        "go build -o server .",
        others={"heeds_port": True, "doubts": ()},
    ),
    "Go next to a folder named like its program": Case(
        {"go.mod": "module m\n", "main.go": GO, "server/http.go": "package server\n"},
        "./program",
        "go build -o program .",
    ),
    "Go that reads an address": Case(
        {
            "go.mod": "module m\n",
            "main.go": 'package main\nvar a = os.Getenv("LISTEN_ADDR")\nvar b = Getenv("DB_ADDR")',
        },
        "LISTEN_ADDR=127.0.0.1:$PORT ./server",
        "go build -o server .",
    ),
    "a Cargo workspace": Case(
        {
            "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
            "Cargo.lock": "",
            "crates/api/Cargo.toml": '[package]\nname = "a"\n[[bin]]\nname = "shopd"\n',
            "crates/api/src/main.rs": 'let l = TcpListener::bind("0.0.0.0:3000");\n',
            "crates/tool/Cargo.toml": '[package]\nname = "tool"\n',
            "crates/tool/src/main.rs": "fn main() {}\n",
        },
        "./target/release/shopd",
        "cargo build --release --locked --bin shopd",
        says=("it binds 0.0.0.0:3000 in crates/api/src/main.rs:1", "built with --release"),
    ),
    "Rocket, with a program in src/bin": Case(
        {
            "Cargo.toml": '[package]\nname = "x"\n',
            "src/bin/web.rs": "#[launch]\nfn rocket() {}\n",
            "src/bin/tool.rs": "fn main() {}\n",
        },
        "ROCKET_ADDRESS=127.0.0.1 ROCKET_PORT=$PORT ROCKET_LOG_LEVEL=critical ./target/release/web",
        "cargo build --release --bin web",
        says=("there is no Cargo.lock",),
    ),
    "Spring Boot with Maven's wrapper": Case(
        {
            "mvnw": "",
            "pom.xml": "<project><parent><artifactId>x</artifactId><version>3</version></parent>"
            f"{SPRING}<artifactId>shop</artifactId><version>1.0</version></project>",
        },
        "java -jar target/shop-1.0.jar --server.address=127.0.0.1 --server.port=$PORT",
        f"sh ./mvnw {MAVEN} package",
        says=("a JVM gets faster for many seconds", "mvnw builds it"),
    ),
    "a war of Spring Boot in a module of Maven": Case(
        {
            "pom.xml": f"<packaging>pom</packaging>{SPRING}"
            "<module>lib</module><module>web</module>",
            "lib/pom.xml": SPRING,
            "web/pom.xml": f"{SPRING}<packaging>war</packaging>"
            "<build>spring-boot-maven-plugin<finalName>shop</finalName></build>",
        },
        "java -jar web/target/shop.war --server.address=127.0.0.1 --server.port=$PORT",
        f"mvn {MAVEN} --projects web --also-make package",
    ),
    "Spring Boot with Gradle's wrapper": Case(
        {
            "gradlew": "",
            "settings.gradle": "rootProject.name = 'shop'",
            "build.gradle": "id 'org.springframework.boot' version '3'\nversion = '1.0'\n",
        },
        "java -jar build/libs/shop-1.0.jar --server.address=127.0.0.1 --server.port=$PORT",
        "sh ./gradlew --quiet --no-daemon bootJar",
    ),
    "Spring Boot whose configuration names a database": Case(
        {
            "pom.xml": f"<project>{SPRING}<artifactId>shop</artifactId><version>1</version>",
            "src/main/resources/application.yml": "url: jdbc:mysql://localhost/shop\n",
            "src/main/resources/application-dev.yml": "url: jdbc:h2:mem\n",
        },
        "SPRING_DATASOURCE_URL=jdbc:mysql://$DB_HOST:$DB_PORT/$DB_NAME "
        "SPRING_DATASOURCE_USERNAME=$DB_USER SPRING_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT",
        f"mvn {MAVEN} package",
        says=("its configuration names mariadb",),
        others={"services": {"db": "mariadb"}},
    ),
    "Spring Boot whose database is in memory, but for a profile": Case(
        {
            "pom.xml": f"<project>{SPRING}<artifactId>shop</artifactId><version>1</version>",
            "src/main/resources/application.properties": "database=h2\n",
            "src/main/resources/application-mysql.properties": "url=jdbc:mysql://localhost/x\n",
        },
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT",
        f"mvn {MAVEN} package",
        others={"services": {}},
    ),
    "Quarkus with a database": Case(
        {
            "build.gradle": "io.quarkus",
            "src/main/resources/application.properties": "quarkus.datasource.db-kind=postgresql\n",
        },
        "QUARKUS_DATASOURCE_JDBC_URL=jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME "
        "QUARKUS_DATASOURCE_USERNAME=$DB_USER QUARKUS_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar "
        "build/quarkus-app/quarkus-run.jar",
        "gradle --quiet --no-daemon quarkusBuild",
        others={"services": {"db": "postgresql"}},
    ),
    "Quarkus with Gradle": Case(
        {"build.gradle.kts": 'plugins { id("io.quarkus") }\n'},
        "java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar "
        "build/quarkus-app/quarkus-run.jar",
        "gradle --quiet --no-daemon quarkusBuild",
    ),
    "Ktor": Case(
        {"build.gradle.kts": "io.ktor\n", "settings.gradle.kts": 'rootProject.name = "shop"'},
        "build/install/shop/bin/shop",
        "gradle --quiet --no-daemon installDist",
        says=("nothing here mentions PORT",),
    ),
    "ASP.NET Core": Case(
        {
            "src/Shop/Shop.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web">',
            "src/Lib/Lib.csproj": '<Project Sdk="Microsoft.NET.Sdk">',
            "tests/Shop.Tests.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web">',
        },
        "ASPNETCORE_URLS=http://127.0.0.1:$PORT dotnet out/Shop.dll",
        "dotnet publish src/Shop/Shop.csproj --configuration Release --output out --nologo",
    ),
    "a library with a Dockerfile": Case(
        {"go.mod": "module m\n", "Dockerfile": "FROM x\nCMD serve\n"},
        says=("--start serve",),
        others={"image": "."},
    ),
    "Dockerfile of several stages": Case(
        {
            "Containerfile": 'FROM a AS built\nCMD make\nfrom b\nCMD ["x"]\n'
            'entrypoint ["./server", \\\n "--port"]\nCMD ["80"]\n'
        },
        says=("--start './server --port $PORT'",),
        others={"image": "."},
    ),
    "Dockerfile with a line of shell": Case(
        {"Dockerfile": 'FROM x\nENTRYPOINT exec ./server\nCMD ["80"]\n'},
        says=("--start 'exec ./server'",),
        others={"image": "."},
    ),
    "Dockerfile whose words are a line of shell": Case(
        {"Dockerfile": 'FROM x\nCMD ["/bin/sh", "-c", "make up && exec ./server"]\n'},
        says=("--start 'make up && exec ./server'",),
        others={"image": "."},
    ),
    "Dockerfile that a Compose file builds as what is asked": Case(
        {
            "app.dockerfile": "",
            "Dockerfile": "FROM x\nCMD sh start.sh\n",
            "start.sh": "flask db upgrade\nexec gunicorn app\n",
            "compose.yaml": "services: {db: {image: x}, worker: {build: .}, "
            'web: {build: {context: ., dockerfile: Dockerfile}, ports: ["80:80"]}}',
        },
        others={"image": "compose.yaml#web"},
        says=("what runs next to the image of Dockerfile", "at each start: flask db upgrade"),
    ),
    "Dockerfile that a Compose file doesn't build": Case(
        {"Dockerfile": "FROM x\n", "compose.yaml": 'services: {web: {image: x, ports: ["80"]}}'},
        says=("compose.yaml aren't read",),
        others={"image": "."},
    ),
    "Compose files next to a Dockerfile": Case(
        {"Dockerfile": "FROM x\n", "compose.prod.yaml": "services: {}", "compose.yaml": ""},
        says=("compose.prod.yaml, compose.yaml aren't read",),
        others={"image": "."},
    ),
    "Compose file with one open service": Case(
        {"compose.yml": 'services: {data: {image: x}, web: {build: ., ports: ["80:80"]}}'},
        others={"image": "compose.yml#web"},
    ),
    "Dockerfile of what stands behind the service that is asked": Case(
        {
            "Dockerfile": "FROM php:fpm\n",
            "compose.yaml": "services: {app: {build: .}, db: {image: mysql, ports: ['3306:3306']}, "
            "web: {image: nginx, ports: ['8080:80']}}",
        },
        others={"image": "compose.yaml#web"},
        says=("what runs next to the image of Dockerfile",),
    ),
    "Compose file whose other open services are databases, and tools for them": Case(
        {
            "compose.yaml": "services: {db: {build: db, ports: ['3307:3306']}, "
            "admin: {image: 'dpage/pgadmin4:9', ports: ['80']}, "
            "cache: {image: 'redis:7-alpine', ports: [{target: 6379}]}, "
            "web: {build: web, ports: ['127.0.0.1:8080:80/tcp']}}",
            "web/index.php": "",
            "web/Dockerfile": "FROM php\n",
        },
        others={"image": "compose.yaml#web"},
    ),
    "Compose file with nothing but what a program in a folder needs": Case(
        {
            "compose.yaml": "services: {db: {image: 'postgres:17', ports: ['5432:5432']}, "
            "login: {image: quay.io/keycloak/keycloak, ports: ['8081:8080']}}",
            "server/package.json": {"scripts": {"start": "node s.js"}},
            "server/s.js": "listen(process.env.PORT)",
        },
        "NODE_ENV=production node s.js",
        others={"dir": "server"},
    ),
    "Spring Boot whose database only its mapper names, with Redis": Case(
        {
            "pom.xml": "<artifactId>shop</artifactId><version>1</version><packaging>jar</packaging>"
            "<dependencies>spring-boot-starter-data-redis</dependencies>",
            "src/main/resources/application.yaml": "spring:\n  jpa:\n    database: postgresql\n",
        },
        "SPRING_REDIS_HOST=$CACHE_HOST SPRING_REDIS_PORT=$CACHE_PORT "
        "SPRING_REDIS_PASSWORD=$CACHE_PASSWORD SPRING_DATA_REDIS_HOST=$CACHE_HOST "
        "SPRING_DATA_REDIS_PORT=$CACHE_PORT SPRING_DATA_REDIS_PASSWORD=$CACHE_PASSWORD "
        "SPRING_DATASOURCE_URL=jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME "
        "SPRING_DATASOURCE_USERNAME=$DB_USER SPRING_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT",
        "mvn --quiet --batch-mode -DskipTests package",
        others={"services": {"db": "postgresql", "cache": "redis"}},
    ),
    "Gradle whose file makes a program of each module that has a main class": Case(
        {
            "gradlew": "",
            "settings.gradle": "rootProject.name = 'chat'\ninclude 'core:web', 'core:data'\n",
            "build.gradle": "plugins { id 'org.springframework.boot' version '3' }\n"
            "subprojects {\n  apply plugin: 'org.springframework.boot'\n}\n",
            "core/web/build.gradle": "",
            "core/web/src/main/java/Web.java": "@SpringBootApplication\nclass Web {}",
            "core/data/build.gradle": "",
        },
        "java -jar core/web/build/libs/*.jar --server.address=127.0.0.1 --server.port=$PORT",
        "sh ./gradlew --quiet --no-daemon :core:web:bootJar",
    ),
    "nginx.conf": Case({"nginx.conf": "events {}"}, others={"conf": "nginx.conf"}),
    "nginx.conf with pages": Case(
        {"nginx.conf": "events {}", "html/index.html": ""},
        others={"conf": "nginx.conf", "root": "html"},
    ),
    "pages": Case(
        {"public/index.html": "", "public/about.html": ""},
        "python3 -m http.server $PORT --bind 127.0.0.1 --directory public",
        paths=("/", "/about.html"),
        others={"connections": 4},
    ),
    "a folder with the application": Case(
        {"README.md": "", "backend/go.mod": "module m\n", "backend/main.go": GO},
        "./server",
        "go build -o server .",
        others={"dir": "backend", "by": "backend/go.mod"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_is_known(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])


REFUSED = {
    "a war alone": (
        {"pom.xml": "<packaging>war</packaging>"},
        "needs a servlet container: build an image with one, and webdyno init --image .",
    ),
    "a program of Java": ({"pom.xml": "<project/>"}, "neither Spring Boot, Quarkus"),
    "a library of Go": ({"go.mod": "module m\n"}, "go.mod has no program"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_it_cannot_start_is_said(tmp_path: Path, name: str) -> None:
    files, why = REFUSED[name]
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    found = find_app(tmp_path)
    assert found
    assert not found.is_whole
    assert why in found.doubts[0]


def test_of_several_folders_you_choose(tmp_path: Path) -> None:
    found = choices(
        tmp_path,
        {
            "api/go.mod": "module m\n",
            "api/main.go": GO,
            "web/package.json": '{"scripts": {"start": "node x"}}',
            "web/Dockerfile": "FROM x\n",
            "docs/index.html": "",
        },
    )
    assert {name: it.dir for name, it in found.items()} == {"api": "api", "web": "web"}


def test_nothing_known_is_nothing_found(tmp_path: Path) -> None:
    assert find_app(tmp_path) is None
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    compose = find_app(tmp_path)
    assert compose
    assert compose.start is None
