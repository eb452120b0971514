"""Databases: by which variables applications find them, and what fills them once."""

import subprocess
from pathlib import Path

import pytest

from systems.layouts.laid_out import Files, laid_out
from webdyno.systems.layouts import find_app

GO_MAIN = 'package main\nfunc main() { os.Getenv("PORT"); http.ListenAndServe() }\n'
PSQL = "psql -qX -v ON_ERROR_STOP=1 >/dev/null"
TABLE = "CREATE TABLE item (id int);\n"
GO_POSTGRESQL: Files = {
    "go.mod": "module m\nrequire github.com/lib/pq v1\n",
    "main.go": GO_MAIN + 'os.Getenv("DATABASE_URL")\n',
}
PYTHON: Files = {
    "requirements.txt": "fastapi\nuvicorn\n",
    "main.py": "from fastapi import FastAPI\napp = FastAPI()\n",
}
FOUND: dict[str, tuple[Files, dict[str, str], str | None, str]] = {
    "settings with whole addresses as defaults": (
        {
            **PYTHON,
            "requirements.txt": "fastapi\nuvicorn\nsqlalchemy\naiomysql\n",
            "config.py": "class Config(BaseSettings):\n"
            '    WRITER_DB_URL: str = "mysql+aiomysql://a:b@localhost/c"\n',
        },
        {"db": "mariadb"},
        None,
        (
            "DATABASE_URL=mysql+aiomysql:${DATABASE_URL#*:} "
            "WRITER_DB_URL=mysql+aiomysql:${DATABASE_URL#*:} "
        ),
    ),
    "a driver, and another database that is only spoken of": (
        {
            **PYTHON,
            "requirements.txt": "fastapi\nuvicorn\nasyncpg\n",
            "c.py": 'os.environ["POSTGRES_HOST"]\nPREFIX = "mysql://"\n',
        },
        {"db": "postgresql"},
        None,
        "POSTGRES_HOST=$DB_HOST ",
    ),
    "a member of a workspace has the driver": (
        {
            "package.json": {
                "workspaces": ["packages/*"],
                "scripts": {"start": "node s.js"},
                "dependencies": {"express": "5"},
            },
            "packages/db/package.json": {"name": "db", "dependencies": {"pg": "8"}},
            "s.js": "process.env.DATABASE_URL; app.listen(process.env.PORT)\n",
        },
        {"db": "postgresql"},
        None,
        "NODE_ENV=production node s.js",
    ),
    "a library of C++": (
        {
            "CMakeLists.txt": "pkg_check_modules(PQXX REQUIRED libpqxx)\nadd_executable(a m.cpp)\n",
            "m.cpp": '#include "httplib.h"\nint main() { getenv("PORT"); getenv("DB_HOST"); }\n',
        },
        {"db": "postgresql"},
        None,
        "./build/a",
    ),
    "TypeORM's usual variables": (
        {
            "package.json": {
                "scripts": {"start": "node s.js"},
                "dependencies": {"express": "5", "pg": "8", "typeorm": "0.3"},
            },
            "s.js": "process.env.TYPEORM_HOST; app.listen(process.env.PORT)\n",
        },
        {"db": "postgresql"},
        None,
        "TYPEORM_HOST=$DB_HOST NODE_ENV=production node s.js",
    ),
    "an address of viper's, by a driver that nobody knows": (
        {
            "go.mod": "module shop\n\ngo 1.25\n\nrequire example.com/driver v1.0.0\n",
            "main.go": 'package main\n\nimport "github.com/spf13/viper"\n\nfunc main() {\n'
            '\tviper.SetDefault("db_dsn", "postgres://a:b@localhost/c?sslmode=disable")\n\tviper.AutomaticEnv()\n'
            '\topen(viper.GetString("db_dsn"))\n'
            '\thttp.ListenAndServe(":"+viper.GetString("port"), nil)\n}\n',
        },
        {"db": "postgresql"},
        None,
        "DB_DSN=$DATABASE_URL?sslmode=disable ./server",
    ),
    "a program that makes its tables by a word": (
        {
            "go.mod": "module shop\n\nrequire github.com/jackc/pgx v5.0.0\n",
            "main.go": 'package main\n\nimport "github.com/spf13/cobra"\n\nfunc main() {\n'
            '\tos.Getenv("DATABASE_URL")\n\thttp.ListenAndServe(":"+os.Getenv("PORT"), nil)\n}\n',
            "cmd.go": 'package main\nvar a = &cobra.Command{Use: "serve"}\n'
            'var b = &cobra.Command{Use: "migrate"}\n',
            "migrations/2_rows.up.sql": "INSERT INTO made_by_a_program VALUES (1);",
        },
        {"db": "postgresql"},
        "./server migrate",
        "./server serve",
    ),
    "TypeORM's driver, whose example is a placeholder": (
        {
            "package.json": {
                "scripts": {"start": "node s.js"},
                "dependencies": {"express": "5", "pg": "8", "typeorm": "0.3"},
            },
            ".env.example": "DB_TYPE=db_type\nDB_HOST=db_host\n",
            "s.js": "const db = { type: process.env.DB_TYPE, host: process.env.DB_HOST };\n"
            "app.listen(process.env.PORT)\n",
        },
        {"db": "postgresql"},
        None,
        "DB_TYPE=postgres NODE_ENV=production node s.js",
    ),
    "two drivers, of which the example names one": (
        {
            **PYTHON,
            "requirements.txt": "fastapi\nuvicorn\npsycopg\npymysql\n",
            ".env.example": "SHOP_DSN=mysql://a:b@localhost/c\n",
        },
        {"db": "mariadb"},
        None,
        "SHOP_DSN=$DATABASE_URL ",
    ),
    "keys of Rust's config, one within another": (
        {
            "Cargo.toml": '[package]\nname = "shop"\n[dependencies]\nsqlx = { features = [\n'
            '    "postgres",\n] }\n',
            "Cargo.lock": "",
            ".sqlx/query-1.json": "{}",
            "src/main.rs": "axum::serve(l, app)\n#[derive(Deserialize)]\npub struct Settings {\n"
            "    pub database: Database,\n    pub application: Application,\n"
            "    pub redis_uri: Secret<String>,\n}\n"
            "#[derive(serde::Deserialize, Clone)]\npub struct Database {\n    pub host: String,\n"
            "    pub database_name: String,\n}\n"
            "#[derive(Deserialize)]\nstruct Application {\n    port: u16,\n}\n"
            'Environment::with_prefix("APP").prefix_separator("_").separator("__")\n',
            "migrations/1_items.sql": TABLE,
        },
        {"db": "postgresql", "cache": "redis"},
        f"awk 1 migrations/*.sql | {PSQL}",
        (
            "APP_DATABASE__DATABASE_NAME=$DB_NAME APP_DATABASE__HOST=$DB_HOST "
            "APP_REDIS_URI=$REDIS_URL APP_APPLICATION__PORT=$PORT "
        ),
    ),
    "Go's driver of MySQL": (
        {
            "go.mod": "module m\nrequire (\n\tgithub.com/go-sql-driver/mysql v1\n"
            "\tgithub.com/lib/pq v1 // indirect\n)\n",
            "main.go": GO_MAIN + 'os.Getenv("DB_DSN")\n',
            "shop.sql": f"CREATE DATABASE shop;\nUSE `shop`;\n{TABLE}",
        },
        {"db": "mariadb"},
        (
            r"sed -E '/^[ \t]*((CREATE|DROP) DATABASE|USE)\b/Id' shop.sql | "
            "mariadb --user=$MYSQL_USER $MYSQL_DATABASE"
        ),
        'DB_DSN="$DB_USER:$DB_PASSWORD@tcp($DB_HOST:$DB_PORT)/$DB_NAME?parseTime=true" ',
    ),
    "migrations of golang-migrate, run by a file that is compiled on request": (
        {
            **GO_POSTGRESQL,
            "migrate.go": "//go:build migrate\n\npackage main\nmigrate.New(url)\n",
            "db/migrations/1_a.up.sql": TABLE,
            "db/migrations/1_a.down.sql": "DROP TABLE item;",
        },
        {"db": "postgresql"},
        f"awk 1 db/migrations/*.up.sql | {PSQL}",
        "",
    ),
    "migrations of golang-migrate somewhere below": (
        {**GO_POSTGRESQL, "platform/migrations/1_a.up.sql": TABLE},
        {"db": "postgresql"},
        f"awk 1 platform/migrations/*.up.sql | {PSQL}",
        "",
    ),
    "migrations that the program runs itself": (
        {**GO_POSTGRESQL, "m.go": "package main\nmigrate.New(u)\n", "migrations/1.up.sql": TABLE},
        {"db": "postgresql"},
        None,
        "",
    ),
    "migrations of goose, and rows": (
        {
            **GO_POSTGRESQL,
            "migrations/001_a.sql": f"-- +goose Up\n{TABLE}-- +goose Down\nDROP TABLE item;\n",
            "db/seed.sql": "INSERT …",
        },
        {"db": "postgresql"},
        (
            f"sed -s '/+goose Down/,$d' migrations/*.sql | {PSQL} && "
            "psql -qX -v ON_ERROR_STOP=1 -f db/seed.sql >/dev/null"
        ),
        "",
    ),
    "migrations of Diesel": (
        {**GO_POSTGRESQL, "migrations/2024-01-01_items/up.sql": TABLE},
        {"db": "postgresql"},
        f"awk 1 migrations/*/up.sql | {PSQL}",
        "",
    ),
    "Heroku's address for Java": (
        {
            "Procfile": "web: java -jar target/x.jar --server.port=$PORT\n",
            "pom.xml": "<groupId>org.springframework.boot</groupId>"
            "<artifactId>postgresql</artifactId>",
            "A.java": 'System.getenv("JDBC_DATABASE_URL")\n',
        },
        {"db": "postgresql"},
        None,
        (
            'JDBC_DATABASE_URL="jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME?user=$DB_USER'
            '&password=$DB_PASSWORD" '
        ),
    ),
}


def test_a_database_of_several_lines_is_cut_off(tmp_path: Path) -> None:
    dump = "CREATE DATABASE a\n DEFAULT CHARSET x;\nUSE a\nCREATE TABLE t (id int);\n"
    files: Files = {
        "requirements.txt": "flask\npymysql\n",
        "app.py": "app = Flask(__name__)\nos.getenv('MYSQL_HOST')\n",
        "init.sql": dump,
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.setup
    reads, _, fills = found.setup.partition(" | ")
    done = subprocess.run(reads, shell=True, cwd=tmp_path, capture_output=True, check=True)  # noqa: S602
    assert done.stdout.decode() == "CREATE TABLE t (id int);\n"
    assert fills.startswith("mariadb ")


def test_names_of_many_words_lead_to_a_database(tmp_path: Path) -> None:
    files: Files = {
        "requirements.txt": "flask\npymysql\n",
        "app.py": "app = Flask(__name__)\nos.getenv('MY_OWN_SHOP_DB_HOST')\nTESTS = 'sqlite://'\n",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.services == {"db": "mariadb"}
    (tmp_path / "app.py").write_text("app = Flask(__name__)\nos.getenv('DB_CONN_URL')\n")
    found = find_app(tmp_path)
    assert found
    assert "DB_CONN_URL=" in (found.start or "")


def test_drivers_of_a_workspace_s_members_and_in_any_letters_are_known(tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    files: Files = {
        "requirements.txt": "Flask\nPyMySQL==1.1\n",
        "app.py": "app = Flask(__name__)\nos.getenv('MYSQL_HOST')\n",
    }
    found = find_app(laid_out(tmp_path / "python", files))
    assert found
    assert found.services == {"db": "mariadb"}
    (tmp_path / "rust").mkdir()
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["web"]\n',
        "Cargo.lock": "",
        "web/Cargo.toml": '[package]\nname = "web"\n[dependencies]\n'
        'sqlx = { features = ["postgres"] }\n',
        "web/src/main.rs": 'env::var("PORT"); env::var("DATABASE_URL"); axum::serve(l, app)\n',
    }
    found = find_app(laid_out(tmp_path / "rust", files))
    assert found
    assert found.services == {"db": "postgresql"}


@pytest.mark.parametrize("name", FOUND)
def test_databases_are_found_and_filled(tmp_path: Path, name: str) -> None:
    files, services, setup, exported = FOUND[name]
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.start
    assert dict(found.services) == services
    assert (found.setup is None) == (setup is None)
    assert setup is None or (found.setup or "").endswith(setup)
    assert found.start.startswith(exported)
    assert not found.doubts


def test_goose_files_are_cut_off_where_they_are_undone(tmp_path: Path) -> None:
    files, _, setup, _ = FOUND["migrations of goose, and rows"]
    (tmp_path / "psql").write_text("#!/bin/sh\ncat >&2\n")
    (tmp_path / "psql").chmod(0o755)
    laid_out(tmp_path, files)
    assert setup
    command = setup.partition(" && ")[0].replace("psql", "./psql")
    run = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert run.stderr == f"-- +goose Up\n{TABLE}"


SAID: dict[str, tuple[Files, str]] = {
    "an address in a file": (
        {
            "package.json": {"dependencies": {"pg": "8"}, "scripts": {"start": "node s.js"}},
            "s.js": "app.listen(process.env.PORT)\n",
            "config/db.js": 'module.exports = {\n  HOST: "localhost",\n}\n',
            "admin/servers.json": '{"Host": "localhost"}',
        },
        (
            "it needs postgresql, and its address stands in config/db.js:2: have it read $DB_HOST, "
            "$DB_PORT, $DB_USER, $DB_PASSWORD and $DB_NAME there, with services.db = "
            '"postgresql" below [app]'
        ),
    ),
    "an address in a string": (
        {
            "go.mod": "module m\nrequire gorm.io/driver/postgres v1\n",
            "main.go": 'package main\nfunc main() { os.Getenv("PORT") }\n',
            "store/open.go": 'package store\nconst dsn = "host=localhost user=gorm port=5432"\n',
        },
        (
            "it needs postgresql, and its address stands in store/open.go:2: have it read "
            "$DB_HOST, $DB_PORT, $DB_USER, $DB_PASSWORD and $DB_NAME there, with services.db = "
            '"postgresql" below [app]'
        ),
    ),
    "a port in a file": (
        {
            "go.mod": "module m\n",
            "main.go": "package main\nfunc main() { http.ListenAndServe(cfg.Address) }\n",
            "conf/app.ini": "[server]\nHttpPort = 8000\n",
        },
        (
            "nothing here mentions PORT, the variable with the port that it has to "
            "listen on; it binds "
            "port 8000 in conf/app.ini:2: both variants are up at the same time, and "
            "need a port each"
        ),
    ),
    "a port in a constant": (
        {
            "Cargo.toml": '[package]\nname = "shop"\n',
            "Cargo.lock": "",
            "src/main.rs": 'const BIND: &str = "0.0.0.0:8080";\nHttpServer::new().bind(BIND)\n',
        },
        (
            "nothing here mentions PORT, the variable with the port that it has to "
            "listen on; it binds "
            "0.0.0.0:8080 in src/main.rs:1: both variants are up at the same time, and need a port "
            "each"
        ),
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_stands_in_the_way_is_said_with_its_place(tmp_path: Path, name: str) -> None:
    files, doubt = SAID[name]
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert doubt in found.doubts


def test_a_database_that_is_a_file_is_filled_by_the_build(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {
            "dependencies": {"@prisma/client": "5", "prisma": "5"},
            "scripts": {"start": "node s.js"},
            "prisma": {"seed": "node seed.js"},
        },
        "s.js": "app.listen(process.env.PORT)\n",
        "prisma/schema.prisma": 'provider = "sqlite"\n',
        "prisma/migrations/1/migration.sql": TABLE,
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert (found.services, found.setup, found.prepare) == ({}, None, None)
    assert (found.build or "").endswith(
        " && npx prisma generate && npx prisma migrate deploy && npx prisma db seed"
    )


def test_what_prismas_schema_reads_gets_the_address(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {
            "dependencies": {"@prisma/client": "6", "prisma": "6"},
            "scripts": {"start": "node s.js"},
        },
        "s.js": "app.listen(process.env.PORT)\n",
        "prisma/schema.prisma": 'datasource db {\n  provider = "postgresql"\n'
        '  url      = env("DB_ADDRESS")\n  directUrl = env("DIRECT_URL")\n}\n',
        "prisma/migrations/1/migration.sql": TABLE,
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    both = "DB_ADDRESS=$DATABASE_URL DIRECT_URL=$DATABASE_URL"
    assert (found.start, found.services) == (
        f"{both} NODE_ENV=production node s.js",
        {"db": "postgresql"},
    )
    assert found.setup == f"export {both} && npx prisma migrate deploy"


def test_a_driver_that_no_source_uses_is_no_need(tmp_path: Path) -> None:
    files: Files = {**PYTHON, "requirements.txt": "fastapi\nuvicorn\npsycopg\n"}
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert (found.services, found.doubts) == ({}, ())
    (tmp_path / "main.py").write_text(f"{files['main.py']}connect_to_database()\n")
    (tmp_path / "more.json").write_text("{}")  # the last file that is looked at
    found = find_app(tmp_path)
    assert found
    (doubt,) = found.doubts
    assert "it needs postgresql, and no variable for its address was found" in doubt
