"""Variables that settings read by their types, in the languages that have such."""

from pathlib import Path

import pytest

from e2e.own import make_repository
from systems.layouts.laid_out import Files, laid_out
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.settings import settings_of, with_env_file
from webdyno.systems.repository import repository_of

SETTINGS: dict[str, tuple[Files, set[str]]] = {
    "pydantic-settings": (
        {
            "config.py": "class Settings(BaseSettings):\n"
            '    model_config = SettingsConfigDict(env_file=".env")\n\n'
            "    database_url: PostgresDsn\n    port: int = 8000\n    secret_key: str\n"
        },
        {"DATABASE_URL", "PORT", "SECRET_KEY"},
    ),
    "pydantic-settings with a prefix, an alias and a class below it": (
        {
            "config.py": "class Base(pydantic_settings.BaseSettings):\n    class Config:\n"
            '        env_prefix = "SHOP_"\n        extra: str = "ignore"\n\n'
            "    debug: bool = False\n"
            "class Settings(Base):\n"
            "    dsn: PostgresDsn = Field(\n        ..., validation_alias='POSTGRES_DSN'\n    )\n"
            "class Other(BaseModel):\n    name: str\n"
        },
        {"SHOP_DEBUG", "POSTGRES_DSN"},
    ),
    "pydantic-settings without fields, and one model within another": (
        {
            "config.py": "class CustomBaseSettings(BaseSettings):\n    pass\n\n"
            "class Db(BaseModel):\n    host: str\n    port: int = 5432\n\n"
            "class Settings(CustomBaseSettings):\n"
            '    model_config = SettingsConfigDict(env_nested_delimiter="__")\n    db: Db = Db()\n'
        },
        {"DB__HOST", "DB__PORT"},
    ),
    "environs": (
        {"s.py": 'URL = env.dj_db_url("DATABASE_URI")\nKEY = env("SECRET_KEY")\n'},
        {"DATABASE_URI", "SECRET_KEY"},
    ),
    "caarlos0/env": (
        {"c.go": 'type C struct {\n\tURL string `env:"DATABASE_URL,required"`\n}\n'},
        {"DATABASE_URL"},
    ),
    "prefixes of caarlos0/env and cleanenv": (
        {
            "c.go": 'type C struct {\n\tKey string `env:"KEY"`\n\tDB DB `envPrefix:"DB_"`\n}\n'
            'type DB struct {\n\tHost string `env:"HOST,required"`\n}\n'
            'env.Options{Prefix: "APP_"}\n'
        },
        {"APP_KEY", "APP_DB_HOST"},
    ),
    "envconfig": (
        {
            "c.go": "type C struct {\n\tPort int\n\tDatabaseURL string `split_words:"
            '"true"`\n\tKey string `envconfig:"JWT_KEY"`\n}\nenvconfig.Process("shop", &c)\n'
        },
        {"SHOP_PORT", "SHOP_DATABASE_URL", "JWT_KEY"},
    ),
    "viper": (
        {
            "c.go": 'import "github.com/spf13/viper"\nviper.AutomaticEnv()\n'
            'viper.GetString("database.url")\nviper.BindEnv("port", "HTTP_PORT")\n'
        },
        {"DATABASE_URL", "HTTP_PORT"},
    ),
    "clap": (
        {
            "c.rs": "struct C {\n    #[clap(long, env)]\n    pub database_url: String,\n"
            '    #[arg(long, env = "HTTP_PORT", default_value_t = 80)]\n    port: u16,\n'
            "    #[arg(long)]\n    environment: String,\n}\n"
        },
        {"DATABASE_URL", "HTTP_PORT"},
    ),
    "envy": (
        {
            "c.rs": "#[derive(Deserialize)]\nstruct C {\n    database_url: String,\n}\n"
            'envy::prefixed("APP_").from_env::<C>()\n'
        },
        {"APP_DATABASE_URL"},
    ),
    "zod": (
        {"env.ts": "export const env = z.object({\n  DATABASE_URL: z.string().url(),\n})\n"},
        {"DATABASE_URL"},
    ),
    "envalid and what is taken apart": (
        {
            "env.js": "cleanEnv(process.env, {\n  PORT: port(),\n})\n"
            "const { A_KEY = 1 } = process.env"
        },
        {"PORT", "A_KEY"},
    ),
    "convict": (
        {"c.js": "convict({\n  url: {\n    env: 'DATABASE_URL',\n  },\n})"},
        {"DATABASE_URL"},
    ),
    "NestJS": (
        {"m.ts": "config.getOrThrow<string>('JWT_SECRET')"},
        {"JWT_SECRET"},
    ),
    "Spring": (
        {
            "src/main/resources/application.yml": "spring:\n  url: ${DATABASE_URL:jdbc:x}\n",
            "src/A.java": '@Value("${jwt.secret}") String s;\n',
            "src/B.java": '@ConfigurationProperties(prefix = "shop.pay")\nclass B {\n'
            "    private String apiUrl;\n}\n",
        },
        {"DATABASE_URL", "JWT_SECRET", "SHOP_PAY_APIURL"},
    ),
    "a profile of Spring's, which nobody asked for": (
        {"src/main/resources/application-postgres.yml": "url: ${POSTGRES_URL:jdbc:x}\n"},
        set(),
    ),
    ".env, which is in Git": ({".env": "SERVICE_PORT = 8080\n"}, {"SERVICE_PORT"}),
    ".env.example": (
        {".env.example": "# x\nDATABASE_URL=\nexport PORT=1\n"},
        {"DATABASE_URL", "PORT"},
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_names_of_typed_settings_are_variables(tmp_path: Path, name: str) -> None:
    files, names = SETTINGS[name]
    assert settings_of(laid_out(tmp_path, files)) == names


FASTAPI = {
    "requirements.txt": "fastapi\nuvicorn\npydantic-settings\nsqlalchemy\nasyncpg\n",
    "main.py": "from fastapi import FastAPI\napp = FastAPI()\n",
}
FOUND: dict[str, tuple[Files, str, dict[str, str], set[str]]] = {
    "FastAPI with typed settings": (
        {
            **FASTAPI,
            "config.py": "class Settings(BaseSettings):\n    database_url: str\n"
            "    jwt_secret: str\n",
        },
        (
            "DATABASE_URL=postgresql+asyncpg:${DATABASE_URL#*:} .venv/bin/uvicorn main:app "
            "--host 127.0.0.1 --port $PORT"
        ),
        {"db": "postgresql"},
        {"JWT_SECRET"},
    ),
    "FastAPI with a prefix": (
        {
            **FASTAPI,
            "config.py": "class Settings(BaseSettings):\n    model_config = "
            '{"env_prefix": "SHOP_"}\n    db_dsn: str\n',
        },
        (
            "DATABASE_URL=postgresql+asyncpg:${DATABASE_URL#*:} "
            "SHOP_DB_DSN=postgresql+asyncpg:${DATABASE_URL#*:} .venv/bin/uvicorn main:app "
            "--host 127.0.0.1 --port $PORT"
        ),
        {"db": "postgresql"},
        set(),
    ),
    "a database in memory for tests, next to a server": (
        {
            "go.mod": "module m\nrequire (\n\tgithub.com/go-sql-driver/mysql v1\n"
            "\tgithub.com/mattn/go-sqlite3 v1\n)\n",
            "main.go": 'package main\nfunc main() { os.Getenv("PORT"); http.ListenAndServe() }\n'
            'os.Getenv("MYSQL_HOST")\nsql.Open("sqlite3", ":memory:")\n',
            "main_test.go": 'sql.Open("sqlite3", "a.db")\nos.Getenv("DATABASE_URL")\n',
        },
        "./server",
        {"db": "mariadb"},
        set(),
    ),
    "Go's mapper, which knows SQLite as well": (
        {
            "go.mod": "module m\nrequire (\n\tgithub.com/lib/pq v1\n"
            "\tgithub.com/go-sql-driver/mysql v1\n)\n",
            ".env": 'db.driver = "mysql"\n',
            "main.go": 'package main\nfunc main() { os.Getenv("PORT"); http.ListenAndServe() }\n'
            'os.Getenv("DB_HOST")\n',
            "ent/client.go": "case dialect.MySQL, dialect.SQLite:\n",
        },
        "./server",
        {"db": "mariadb"},
        set(),
    ),
    "Axum with clap": (
        {
            "Cargo.toml": '[package]\nname = "shop"\n[dependencies]\n'
            'sqlx = { version = "0.8", features = ["postgres"] }\n',
            "Cargo.lock": "",
            "src/main.rs": "axum::serve(l, app)\nstruct C {\n    #[clap(long, env)]\n"
            "    database_url: String,\n    #[clap(long, env)]\n    hmac_key: String,\n"
            "    #[clap(long, env)]\n    port: u16,\n}\n",
        },
        "./target/release/shop",
        {"db": "postgresql"},
        {"HMAC_KEY"},
    ),
    "Express with a checked environment and Redis": (
        {
            "package.json": {
                "dependencies": {"express": "5", "pg": "8", "ioredis": "5"},
                "scripts": {"start": "node s.js"},
            },
            "s.js": "z.object({\n  PG_URL: z.string(),\n  REDIS_URI: z.string(),\n"
            "  PORT: z.coerce.number(),\n})\n",
        },
        "PG_URL=$DATABASE_URL REDIS_URI=$REDIS_URL NODE_ENV=production node s.js",
        {"db": "postgresql", "cache": "redis"},
        set(),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_databases_ports_and_secrets_are_found_by_typed_settings(tmp_path: Path, name: str) -> None:
    files, start, services, secrets = FOUND[name]
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert (found.start, found.services) == (start, services)
    assert set(found.environment) == secrets
    assert not found.doubts


SERVES_GO = 'package main\nfunc main() { os.Getenv("PORT"); http.ListenAndServe() }\n'
EXAMPLE = (
    "APP_NAME=shop\nLOG_LEVEL='info' # more\nPG_URL=postgres://x\nHTTP_PORT=80\nOTHER=1\n"
    "GRPC_PORT=81\nRMQ_URL=amqp://x\nPG_POOL_MAX=2\n"
)
GO: Files = {
    "go.mod": "module m\nrequire github.com/lib/pq v1\n",
    "main.go": "package main\nfunc main() {}\ntype C struct {\n"
    '\tN string `env:"APP_NAME,required"`\n\tL string `env:"LOG_LEVEL,required"`\n'
    '\tU string `env:"PG_URL,required"`\n\tP string `env:"HTTP_PORT,required"`\n'
    '\tG string `env:"GRPC_PORT,required"`\n\tR string `env:"RMQ_URL,required"`\n'
    '\tM string `env:"PG_POOL_MAX,required"`\n}\n',
    ".env.example": EXAMPLE,
}


def test_examples_are_the_values_where_nothing_reads_the_file(tmp_path: Path) -> None:
    make_repository(laid_out(tmp_path, GO))
    repository, app = repository_of(tmp_path), find_app(tmp_path)
    assert repository
    assert app
    found = with_env_file(app, tmp_path, repository)
    assert dict(found.environment) == {
        "APP_NAME": "shop",
        "LOG_LEVEL": "info",
        "GRPC_PORT": "0",
        "RMQ_URL": "amqp://x",
        "PG_POOL_MAX": "2",
    }
    assert found.build == app.build
    assert found.start == "PG_URL=$DATABASE_URL HTTP_PORT=$PORT ./server"


def test_an_example_is_copied_where_the_file_is_read_and_not_in_git(tmp_path: Path) -> None:
    make_repository(laid_out(tmp_path, {**GO, "e.go": 'package main\ngodotenv.Load(".env")\n'}))
    repository, app = repository_of(tmp_path), find_app(tmp_path)
    assert repository
    assert app
    found = with_env_file(app, tmp_path, repository)
    assert found.build == f"cp -n .env.example .env && {app.build}"
    assert found.environment == app.environment
    (tmp_path / ".env").write_text("APP_NAME=mine\n")  # not ignored: revisions have it
    assert with_env_file(app, tmp_path, repository) == app


def build_with_env_file(folder: Path, files: Files) -> str:
    make_repository(laid_out(folder, files))
    repository, app = repository_of(folder), find_app(folder)
    assert repository
    assert app
    return with_env_file(app, folder, repository).build or ""


PROGRAMS: Files = {"go.mod": "module m\n", "main.go": "package main\n"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "main.go",
            'package main\nerr := godotenv.Load()\nif err != nil {\n\tlog.Fatal("no .env")\n}\n',
        ),
        ("main.go", "package main\nif err := godotenv.Load(); err != nil {\n\tpanic(err)\n}\n"),
        ("db.rs", 'dotenv().expect("no .env");\n'),
        ("index.php", "Dotenv\\Dotenv::createImmutable(__DIR__)->load();\n"),
    ],
)
def test_a_program_that_ends_without_the_file_gets_an_empty_one(
    tmp_path: Path, name: str, text: str
) -> None:
    assert build_with_env_file(tmp_path, {**PROGRAMS, name: text}).startswith("touch .env")


def test_symfony_ends_without_the_file(tmp_path: Path) -> None:
    needs = {"symfony/framework-bundle": "7", "symfony/dotenv": "7"}
    files: Files = {"composer.json": {"require": needs}, "symfony.lock": "{}"}
    build = build_with_env_file(tmp_path, {**files, "public/index.php": ""})
    assert build.startswith("touch .env && composer install")


def test_a_program_that_goes_on_without_the_file_gets_none(tmp_path: Path) -> None:
    text = 'package main\nif err := godotenv.Load(); err != nil {\n\tlog.Println("no .env")\n}\n'
    assert "touch" not in build_with_env_file(tmp_path, {**PROGRAMS, "main.go": text})


def test_a_file_that_is_called_as_node_env_says_is_made(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {"scripts": {"start": "node s.js"}, "dependencies": {"dotenv": "1"}},
        "s.js": "listen(process.env.PORT)\nconfig({path: `.env.${process.env.NODE_ENV}.local`})\n",
        ".env.example": "A=1\n",
    }
    assert build_with_env_file(tmp_path, files).startswith(
        "cp -n .env.example .env.production.local && npm install"
    )


def test_a_file_is_made_by_both_names_where_a_source_names_both(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {"scripts": {"start": "node s.js"}, "dependencies": {"dotenv": "1"}},
        "s.js": "listen(process.env.PORT)\nconst file = process.env.NODE_ENV == 'development'"
        " ? `.env.${process.env.NODE_ENV}` : '.env'\n",
        ".env.example": "A=1\n",
    }
    assert build_with_env_file(tmp_path, files).startswith(
        "cp -n .env.example .env && cp -n .env.example .env.production && npm install"
    )


def test_an_example_may_be_called_so_in_another_language(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {"scripts": {"start": "node s.js"}, "dependencies": {"dotenv": "1"}},
        "s.js": "listen(process.env.PORT)\n",
        ".env.exemple": "A=1\n",
    }
    assert build_with_env_file(tmp_path, files).startswith("cp -n .env.exemple .env && npm ")


def test_places_for_values_are_none(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {"scripts": {"start": "node s.js"}, "dependencies": {"dotenv": "1"}},
        "s.js": "listen(process.env.PORT)\n",
        ".env.example": "A=1\nB=<number>\nC={C}\n",
    }
    assert build_with_env_file(tmp_path, files).startswith(
        "grep -vE '=[<{].*[>}]' .env.example >.env && npm "
    )


def test_addresses_stay_out_of_a_file_that_scripts_read(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {"scripts": {"start": "node s.js"}, "dependencies": {"dotenv": "1"}},
        "s.js": "listen(process.env.PORT)\n",
        ".env.example": "DATABASE_URL=postgres://x\nA=1\nPORT=3000\n",
        "bin/db/migrate": "#!/bin/bash\nset -a; source ${ENV_FILE}; set +a\n",
    }
    assert build_with_env_file(tmp_path, files).startswith(
        "grep -vE '^(DATABASE_URL|PORT)=' .env.example >.env && npm install"
    )


WANTED: dict[str, tuple[Files, str]] = {
    "expected by Rust": (
        {
            "Cargo.toml": '[package]\nname = "a"\n',
            "Cargo.lock": "",
            "src/main.rs": 'TcpListener::bind(env::var("PORT").unwrap())\n'
            'env::var("LICENSE_FILE").expect("set it")\nenv::var("X").ok()\n',
        },
        "LICENSE_FILE",
    ),
    "arguments of clap": (
        {
            "Cargo.toml": '[package]\nname = "a"\n',
            "Cargo.lock": "",
            "src/main.rs": "TcpListener::bind(c.port)\nstruct C {\n#[clap(long, env)]\nport: u16,\n"
            "#[clap(long, env)]\nargon_salt: String,\n#[clap(long, env)]\nx: Option<String>,\n"
            '#[clap(long, env, default_value = "1")]\ny: u8,\n}\n',
        },
        "ARGON_SALT",
    ),
    "fields without a value": (
        {
            "requirements.txt": "fastapi\n",
            "main.py": "app = FastAPI()\nclass Settings(BaseSettings):\n    BROKER: AnyUrl\n"
            "    NODES: list[AnyUrl]\n    LEVEL: int = 1\n    KNOWN: str\n"
            "    FREE: str | None\n",
            ".env.example": "KNOWN=1\n",
        },
        "BROKER, NODES",
    ),
    "what settings of Python's read as they are imported": (
        {
            "requirements.txt": "flask\ngunicorn\n",
            "app.py": "import config\napp = Flask(__name__)\n",
            "config.py": 'MAIL = os.environ["MAIL_HOST"]\nif local:\n    B = environ["B"]\n'
            'environ["C"] = "1"\nPORT = int(os.getenv("MAIL_PORT"))\n',
            "tool.py": 'D = os.environ["D"]\n',
        },
        "MAIL_HOST, MAIL_PORT",
    ),
    "what a checked environment wants": (
        {
            "package.json": {"scripts": {"start": "node s.js"}},
            "s.js": "listen(process.env.PORT)\n",
            "env.ts": "z.object({\n  MAIL_FROM: z.string(),\n  SIZE: z.number().default(1),\n"
            "  A_NAME: z.string()\n    .optional(),\n}).parse(process.env)\n",
            "joi.js": "Joi.object({\n  QUEUE_NAME: Joi.string().required(),\n  B: Joi.string(),\n"
            "}); process.env\n",
        },
        "MAIL_FROM, QUEUE_NAME",
    ),
    "what a bundle of Vite's reads": (
        {
            "package.json": {"scripts": {"start": "node s.js"}},
            "s.js": "listen(process.env.PORT)\n",
            "src/api.tsx": "import.meta.env.VITE_API_URL || 'x'; import.meta.env.VITE_MAP_KEY",
        },
        "VITE_MAP_KEY",
    ),
    "placeholders of Spring": (
        {
            "pom.xml": "<artifactId>a</artifactId><version>1</version>spring-boot-maven-plugin",
            "src/main/resources/application.properties": "a=${LICENSE}\nb=${OTHER:1}\n",
            "manifests/application.properties": "b=${OTHER}\n",
        },
        "LICENSE",
    ),
}


@pytest.mark.parametrize("name", WANTED)
def test_variables_without_which_it_ends_are_named(tmp_path: Path, name: str) -> None:
    files, wanted = WANTED[name]
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert f"its settings want {wanted}: --env NAME=VALUE" in "\n".join(found.doubts)


def test_keys_of_a_pair_are_named(tmp_path: Path) -> None:
    reads = 'os.Getenv("JWT_PRIVATE_KEY"); os.Getenv("STRIPE_PUBLIC_KEY")\n'
    found = find_app(laid_out(tmp_path, {"go.mod": "module m\n", "main.go": SERVES_GO + reads}))
    assert found
    doubt, other = found.doubts
    assert "its sources read STRIPE_PUBLIC_KEY, and nothing gives them" in other
    assert "read JWT_PRIVATE_KEY, which can't be made up: JWT_PRIVATE_KEY=$(cat FILE)" in doubt
    assert not found.environment


def test_origins_and_fronts_are_given(tmp_path: Path) -> None:
    files: Files = {
        "requirements.txt": "fastapi\n",
        "main.py": "app = FastAPI()\nclass Settings(BaseSettings):\n    FRONT_END_URL: AnyHttpUrl\n"
        "    CORS_ORIGINS: list[AnyHttpUrl]\n",
    }
    app = find_app(laid_out(tmp_path, files))
    assert app
    assert app.environment == {
        "CORS_ORIGINS": '["http://localhost:3000"]',
        "FRONT_END_URL": "http://localhost:3000",
    }
    assert not app.doubts
