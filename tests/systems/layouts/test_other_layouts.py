"""Layouts of Procfiles, Go, Rust, .NET, Elixir, configurations and pages."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, Files, check, choices, laid_out
from systems.layouts.test_jvm_layouts import MAVEN, SPRING
from webdyno.systems.layouts import find_app

GO = 'package main\nfunc main() { http.HandleFunc("GET /{$}", f); os.Getenv("PORT") }\n'

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
    "Procfile that has a port of its own unless it is told one": Case(
        {"Procfile": "web: ./serve --port=${PORT:-8080}\n"},
        "./serve --port=${PORT:-8080}",
        others={"doubts": ()},
    ),
    "Phoenix": Case(
        {
            "mix.exs": "app: :shop,\n{:phoenix, x}\nassets.deploy\n",
            "config/runtime.exs": 'import Config\nSystem.get_env("DATABASE_URL") || raise "x"',
        },
        "_build/prod/rel/shop/bin/shop start",
        "export MIX_ENV=prod && mix deps.get --only prod && mix compile && mix assets.deploy"
        " && mix release --quiet --overwrite",
        says=("its settings want DATABASE_URL", "`mix phx.server` is for development"),
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
        {
            "go.mod": "module m\n",
            "main.go": 'package main\nimport "github.com/gin-gonic/gin"\nfunc main() { r.Run() }\n',
        },
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
    "Go whose only call that listens has a port, though it names PORT": Case(
        {
            "go.mod": "module m\n",
            "main.go": 'package main\nfunc main() { app.Listen(":3000") }\n',
            "config.go": 'package main\nvar Port = getEnv("PORT")\n',
        },
        "./server",
        "go build -o server .",
        says=("no call that listens reads PORT", "it binds :3000 in main.go:2"),
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
    "a program beside one that Cargo.toml names": Case(
        {
            "Cargo.toml": '[package]\nname = "shop"\n[[bin]]\nname = "openapi"\n'
            'path = "src/openapi.rs"\n',
            "Cargo.lock": "",
            "src/main.rs": 'env::var("PORT")\naxum::serve(l, app)\n',
            "src/openapi.rs": "fn main() {}\n",
        },
        "./target/release/shop",
        "cargo build --release --locked --bin shop",
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
    "ASP.NET Core": Case(
        {
            "src/Shop/Shop.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web">',
            "src/Lib/Lib.csproj": '<Project Sdk="Microsoft.NET.Sdk">',
            "tests/Shop.Tests.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web">',
        },
        "ASPNETCORE_URLS=http://127.0.0.1:$PORT dotnet out/Shop.dll",
        "dotnet publish src/Shop/Shop.csproj --configuration Release --output out --nologo",
    ),
    "ASP.NET Core with connection strings": Case(
        {
            "Shop.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web">',
            "Context.cs": "class Context { DbSet<Item> Items; }",
            "Migrations/1.cs": '[Migration("1")]',
            "appsettings.json": '{"ConnectionStrings": {"Logs": "Data Source=logs.db"}}',
            "appsettings.Development.json": '{ // of developers\n"ConnectionStrings": {\n'
            '"Main": "Server=localhost;Port=5432;Database=shop;User Id=postgres",\n'
            '"Cache": "localhost:6379"}}',
        },
        'ConnectionStrings__Main="Host=$DB_HOST;Port=$DB_PORT;Database=$DB_NAME;Username=$DB_USER;'
        'Password=$DB_PASSWORD" ConnectionStrings__Cache="$CACHE_HOST:$CACHE_PORT,'
        'password=$CACHE_PASSWORD" ASPNETCORE_URLS=http://127.0.0.1:$PORT dotnet out/Shop.dll',
        "dotnet publish Shop.csproj --configuration Release --output out --nologo",
        says=("nothing was found that makes its tables: setup = COMMAND",),
        others={"services": {"db": "postgresql", "cache": "redis"}},
    ),
    "ASP.NET Core with MySQL, which makes its tables": Case(
        {
            "Shop.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web">',
            "appsettings.json": '{"ConnectionStrings": {"Db": "server=db;user=root;database=x"}}',
            "Program.cs": "database.Migrate();\n",
        },
        'ConnectionStrings__Db="Server=$DB_HOST;Port=$DB_PORT;Database=$DB_NAME;User=$DB_USER;'
        'Password=$DB_PASSWORD" ASPNETCORE_URLS=http://127.0.0.1:$PORT dotnet out/Shop.dll',
        "dotnet publish Shop.csproj --configuration Release --output out --nologo",
        others={"services": {"db": "mariadb"}, "doubts": ()},
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
    "a jar without its libraries": (
        {"pom.xml": "<dependencies><groupId>io.javalin</groupId></dependencies>"},
        "so its jar lacks its libraries",
    ),
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


def test_a_back_end_is_taken_before_its_front(tmp_path: Path) -> None:
    files: Files = {
        "backend/go.mod": "module m\n",
        "backend/main.go": GO,
        "frontend/package.json": {
            "scripts": {"start": "next start"},
            "dependencies": {"next": "1"},
        },
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert (found.dir, found.by) == ("backend", "backend/go.mod")
    assert "it is in backend; webdyno init frontend takes frontend" in found.notes


def test_of_programs_that_listen_one_is_taken_by_its_name(tmp_path: Path) -> None:
    files = {"go.mod": "module m\n", "cmd/rest-server/main.go": GO, "cmd/worker/main.go": GO}
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.build == "go build -o server ./cmd/rest-server"


def test_programs_come_before_the_pages_around_them(tmp_path: Path) -> None:
    found = choices(
        tmp_path,
        {"index.html": "", "api/go.mod": "module m\n", "api/main.go": GO, "doc/index.html": ""},
    )
    assert {name: it.dir for name, it in found.items()} == {"api": "api", ".": "."}


def test_nothing_known_is_nothing_found(tmp_path: Path) -> None:
    assert find_app(tmp_path) is None
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    compose = find_app(tmp_path)
    assert compose
    assert compose.start is None
