"""What an application's image, scripts and lists say of its build and its start."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Files, laid_out
from webdyno.systems.layouts import find_app


def test_a_program_starts_with_the_words_of_its_image(tmp_path: Path) -> None:
    files: Files = {
        "CMakeLists.txt": "project(m)\nadd_executable(m main.cc)\n",
        "main.cc": 'app().addListener("127.0.0.1", std::stoi(std::getenv("PORT"))).run();\n',
        "Dockerfile": 'FROM x\nCMD ["./m", "--action=run-server"]\n',
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.start == "./build/m --action=run-server"


def test_a_database_of_ktor_is_found_by_its_variables(tmp_path: Path) -> None:
    files: Files = {
        "build.gradle.kts": 'implementation("io.ktor:ktor-server-netty:3")\n'
        "implementation(libs.postgresql)\n",
        "settings.gradle.kts": 'rootProject.name = "m"\n',
        "gradle/libs.versions.toml": "[libraries]\n"
        'postgresql = { module = "org.postgresql:postgresql", version = "42" }\n',
        "src/main/kotlin/Main.kt": 'val p = System.getenv("PORT")\nval h = getEnv("DB_HOST")!!\n'
        'val u = getEnv("DB_URL")\nfun main() { SchemaUtils.create(Items) }\n',
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.services == {"db": "postgresql"}
    jdbc = '"jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME?user=$DB_USER&password=$DB_PASSWORD"'
    assert found.start == f"DB_URL={jdbc} build/install/m/bin/m"


STEPS: dict[str, tuple[Files, str, str, str | None]] = {
    "a Procfile whose release makes something": (
        {
            "Procfile": "web: gunicorn app:app\nrelease: make tables\n",
            "requirements.txt": "flask\ngunicorn\n",
            "app.py": "from flask import Flask\napp = Flask(__name__)\n",
        },
        ".venv/bin/gunicorn app:app",
        "prepare",
        "PATH=$PWD/.venv/bin:$PATH make tables",
    ),
    "a Procfile whose line is a shell's": (
        {
            "Procfile": 'web: /bin/bash -l -c "rails db:migrate && bundle exec puma"\n',
            "Gemfile": "gem 'rails'\n",
            "config.ru": "",
        },
        "bundle exec puma",
        "prepare",
        "bundle exec rails db:migrate",
    ),
    "a module behind a package of its name": (
        {
            "requirements.txt": "flask\n",
            "app.py": "from app import create_app\napp = create_app()\n",
            "app/__init__.py": "from flask import Flask\ndef create_app():\n    pass\n",
        },
        ".venv/bin/gunicorn 'app:create_app()' --bind 127.0.0.1:$PORT",
        "setup",
        None,
    ),
    "migrations of Phoenix' without a module for releases": (
        {
            "mix.exs": "app: :shop, {:phoenix, 1}, {:postgrex, 1}\n",
            "config/runtime.exs": 'System.get_env("DATABASE_URL")\n',
            "priv/repo/migrations/1.exs": "",
        },
        "_build/prod/rel/shop/bin/shop start",
        "setup",
        "MIX_ENV=prod mix ecto.migrate --quiet",
    ),
    "a cache of Django's that is a table": (
        {
            "requirements.txt": "django\n",
            "manage.py": "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 's.settings')\n",
            "s/settings.py": "CACHES = {'default': "
            "{'BACKEND': 'django.core.cache.backends.db.DatabaseCache'}}\n"
            "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3'}}\n",
            "s/wsgi.py": "",
        },
        ".venv/bin/gunicorn s.wsgi --bind 127.0.0.1:$PORT",
        "prepare",
        (
            ".venv/bin/python manage.py migrate --noinput >/dev/null && "
            ".venv/bin/python manage.py createcachetable >/dev/null"
        ),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_before_a_start_are_whole(tmp_path: Path, name: str) -> None:
    files, start, key, step = STEPS[name]
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert (found.start, getattr(found, key)) == (start, step)


def test_values_of_a_file_that_git_has_are_left(tmp_path: Path) -> None:
    files: Files = {
        "composer.json": {
            "require": {"symfony/framework-bundle": "7", "lexik/jwt-authentication-bundle": "2"}
        },
        "symfony.lock": "{}",
        "public/index.php": "",
        ".gitignore": "/.env\n",
        ".env": "JWT_SECRET_KEY=%kernel.project_dir%/config/jwt/private.pem\n"
        "JWT_PUBLIC_KEY=%kernel.project_dir%/config/jwt/public.pem\n",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert "JWT_SECRET_KEY" not in found.environment
    assert not [each for each in found.doubts if "JWT_PUBLIC_KEY" in each]
    assert "lexik:jwt:generate-keypair --skip-if-exists" in (found.build or "")


def test_a_module_is_taken_that_an_image_serves(tmp_path: Path) -> None:
    files: Files = {
        "requirements.txt": "flask\ngunicorn\n",
        "shop/__init__.py": "from flask import Flask\napp = Flask(__name__)\n",
        "wsgi.py": "from shop import app\nfrom shop.start import fill\nfill()\n",
        "Dockerfile": 'CMD [ "gunicorn", "--bind", "0.0.0.0:5000", "wsgi:app" ]\n',
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.start == ".venv/bin/gunicorn wsgi:app --bind 127.0.0.1:$PORT"


def test_what_a_script_does_to_its_tables_is_done_once(tmp_path: Path) -> None:
    files: Files = {
        "requirements.txt": "flask\nflask-sqlalchemy\n",
        "app.py": "from flask import Flask\napp = Flask(__name__)\nurl = 'sqlite:///a.db'\n"
        "if __name__ == '__main__':\n    with app.app_context():\n        db.create_all()\n"
        "    app.run()\n",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    does = "from app import *; app.app_context().push(); db.create_all()"
    assert (found.build or "").endswith(f" && .venv/bin/python -c '{does}' >/dev/null")


def test_of_several_programs_of_go_the_image_says_which(tmp_path: Path) -> None:
    main = 'package main\nfunc main() { os.Getenv("PORT"); http.ListenAndServe(a) }\n'
    files: Files = {
        "go.mod": "module m\n",
        "cmd/one/main.go": main,
        "cmd/two/main.go": main,
        "Dockerfile": "FROM go\nRUN go build -o /two ./cmd/two\n",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.build == "go build -o server ./cmd/two"


def test_a_list_that_windows_wrote_is_read(tmp_path: Path) -> None:
    laid_out(tmp_path, {"main.py": "from fastapi import FastAPI\napp = FastAPI()\n"})
    (tmp_path / "requirements.txt").write_text("fastapi==1\r\nuvicorn==1\r\n", "utf-16")
    found = find_app(tmp_path)
    assert found
    assert (
        found.build == "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt"
    )


def test_tables_of_laravel_in_a_file_are_filled_by_the_build(tmp_path: Path) -> None:
    files: Files = {
        "composer.json": {"require": {"laravel/framework": "12"}},
        "public/index.php": "",
        ".env.example": "DB_CONNECTION=sqlite\n",
        "database/seeders/DatabaseSeeder.php": "$this->call([ItemSeeder::class]);",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    filled = "touch database/database.sqlite && php artisan migrate --force --seed"
    assert (found.build or "").endswith(filled)
    assert (found.setup, found.prepare) == (None, None)
