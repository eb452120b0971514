"""Layouts of Python applications."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, Files, check, choices, laid_out
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.python_tools import with_its_python

FLASK = "from flask import Flask\nshop = Flask(__name__)\n@shop.get('/items')\ndef f(): pass\n"
FASTAPI = 'from fastapi import FastAPI\napp = FastAPI()\n@app.get("/")\nasync def f(): ...\n'
VENV = "python3 -m venv .venv && .venv/bin/pip install --quiet"
TOOLS = "python3 -m venv .tools && .tools/bin/pip install --quiet"
GUNICORN = "--bind 127.0.0.1:$PORT"
UVICORN = "--host 127.0.0.1 --port $PORT"
MANAGE = 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")\n'
POETRY = "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction --no-root"

REQUIRED = {"requirements.txt": "flask\n", "app.py": FLASK}

CASES = {
    "Flask, with requirements": Case(
        {"requirements.txt": "Flask==3\ngunicorn>=20\n", "shop/web.py": FLASK},
        f".venv/bin/gunicorn shop.web:shop {GUNICORN}",
        f"{VENV} -r requirements.txt",
        says=("Gunicorn serves it: `flask run` and app.run() are for development",),
    ),
    "Flask without a list of what it needs": Case(
        {"app.py": FLASK},
        f".venv/bin/gunicorn app:shop {GUNICORN}",
        f"{VENV} flask gunicorn",
        says=("app.py names no gunicorn; it is installed with the rest",),
    ),
    "a factory of Flask": Case(
        {
            "requirements.txt": "flask\nwaitress\n",
            "shop/__init__.py": "from flask import Flask\ndef create_app(config=None):\n  pass\n",
        },
        ".venv/bin/waitress-serve --call shop:create_app --listen 127.0.0.1:$PORT",
        f"{VENV} -r requirements.txt",
    ),
    "wsgi.py calls a factory": Case(
        {
            "requirements/prod.txt": "-r base.txt\ngunicorn\n",
            "requirements/base.txt": "flask\n",
            "shop/factory.py": "from flask import Flask\ndef create_app(): ...\n",
            "wsgi.py": "from shop.factory import create_app\napp = create_app()\n",
        },
        f".venv/bin/gunicorn wsgi:app {GUNICORN}",
        f"{VENV} -r requirements/prod.txt",
    ),
    "FastAPI, a project that is no package": Case(
        {"pyproject.toml": '[project]\ndependencies = ["fastapi>0.1"]\n', "main.py": FASTAPI},
        f".venv/bin/uvicorn main:app {UVICORN}",
        "uv sync --quiet && uv pip install --quiet uvicorn",
    ),
    "FastAPI with its own server, in src": Case(
        {
            "uv.lock": "",
            "pyproject.toml": '[project]\ndependencies = ["fastapi[standard]"]\n',
            "src/shop/main.py": FASTAPI,
        },
        f".venv/bin/uvicorn --app-dir src shop.main:app {UVICORN}",
        "uv sync --quiet --frozen",
        says=("Uvicorn serves it, without --reload",),
    ),
    "FastAPI, a package": Case(
        {
            "pyproject.toml": '[build-system]\n[project]\ndependencies = ["fastapi", "uvicorn"]\n',
            "main.py": FASTAPI,
        },
        f".venv/bin/uvicorn main:app {UVICORN}",
        f"{VENV} .",
    ),
    "FastAPI with Poetry": Case(
        {
            "poetry.lock": '[[package]]\nname = "uvicorn"\n',
            "pyproject.toml": '[tool.poetry.dependencies]\nfastapi = "*"\n',
            "main.py": FASTAPI,
        },
        f".venv/bin/uvicorn main:app {UVICORN}",
        POETRY,
    ),
    "Pipenv": Case(
        {
            "Pipfile": '[packages]\nflask = "*"\n',
            "Pipfile.lock": {"default": {"flask": {}, "gunicorn": {}}},
            "app.py": FLASK,
        },
        f".venv/bin/gunicorn app:shop {GUNICORN}",
        "PIPENV_VENV_IN_PROJECT=1 pipenv sync",
    ),
    "a workspace of uv whose application is in a member": Case(
        {
            "uv.lock": '[[package]]\nname = "uvicorn"\n',
            "pyproject.toml": '[tool.uv.workspace]\nmembers = ["backend"]\n',
            "backend/pyproject.toml": '[project]\ndependencies = ["fastapi"]\n',
            "backend/app/__init__.py": "",
            "backend/app/main.py": FASTAPI,
        },
        f".venv/bin/uvicorn app.main:app {UVICORN}",
        'UV_PROJECT_ENVIRONMENT="$PWD/.venv" uv sync --quiet --frozen',
        others={"dir": "backend"},
    ),
    "a list at the top that names other things than the application's own": Case(
        {
            "requirements.txt": "mkdocs\n",
            "src/requirements.txt": "fastapi\nuvicorn\n",
            "src/app/main.py": FASTAPI,
        },
        f".venv/bin/uvicorn app.main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
        others={"dir": "src"},
    ),
    "migrations of Alembic below the top": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\nalembic\n",
            "src/alembic.ini": "",
            "src/app/main.py": FASTAPI,
        },
        f".venv/bin/uvicorn --app-dir src app.main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
        others={"prepare": "(cd src && ../.venv/bin/alembic upgrade head >/dev/null)"},
    ),
    "a package called src": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\n",
            "src/main.py": f"from src.routes import items\n{FASTAPI}",
        },
        f".venv/bin/uvicorn src.main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
    ),
    "a module that imports its neighbors": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\nredis\n",
            "app/main.py": f"import logging\nfrom routes import items\n{FASTAPI}",
            "app/routes/items.py": "",
        },
        f".venv/bin/uvicorn --app-dir app main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
    ),
    "a module with neighbors that are called like packages": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\nredis\n",
            "app/main.py": f"import logging\nimport redis\n{FASTAPI}",
            "app/logging.py": "",
            "app/redis.py": "",
        },
        f".venv/bin/uvicorn app.main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
    ),
    "a script that listens itself": Case(
        {
            "requirements.txt": "aiohttp\n",
            "server.py": "if __name__ == '__main__':\n    web.run_app(app, port=PORT)\n",
        },
        ".venv/bin/python server.py",
        f"{VENV} -r requirements.txt",
    ),
    "Sanic": Case(
        {"requirements.txt": "sanic\n", "hello.py": 'app = Sanic("x")\n'},
        ".venv/bin/sanic hello:app --host=127.0.0.1 --port=$PORT --single-process",
        f"{VENV} -r requirements.txt",
    ),
    "Django with uv": Case(
        {
            "uv.lock": "",
            "pyproject.toml": '[project]\ndependencies = ["django", "gunicorn"]\n',
            "manage.py": MANAGE,
            "shop/wsgi.py": "",
            "shop/settings.py": 'DEBUG = True\nALLOWED_HOSTS = []\n"sqlite3"\n',
            "shop/urls.py": '    path("admin/", admin.site.urls),\n    path("", v),\n'
            '    path("items/", v),\n    path("items/<int:id>/", v),\n',
        },
        f".venv/bin/gunicorn shop.wsgi {GUNICORN}",
        "uv sync --quiet --frozen",
        ("/", "/items/"),
        ("DEBUG is True in shop.settings", "`manage.py runserver` is for development"),
        others={"prepare": ".venv/bin/python manage.py migrate --noinput >/dev/null"},
    ),
    "Django in a folder, with settings for production": Case(
        {
            "requirements.txt": "Django\ngunicorn\npsycopg[binary]\n",
            "site/manage.py": MANAGE.replace("shop.settings", "shop.settings.local"),
            "site/shop/wsgi.py": "",
            "site/shop/settings/__init__.py": "",
            "site/shop/settings/base.py": 'DEBUG = env.bool("DJANGO_DEBUG", False)\n'
            'ALLOWED_HOSTS = env.list("HOSTS")\nSTATIC_ROOT = x\n',
            "site/shop/settings/production.py": "from .base import *\n"
            'SECRET_KEY = os.environ["SECRET_KEY"]\nDATABASES = env("DATABASE_URL")\n',
        },
        f".venv/bin/gunicorn --chdir site shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt && "
        ".venv/bin/python site/manage.py collectstatic --noinput >/dev/null",
        says=("shop.settings.production holds its settings, not shop.settings.local",),
        environment={
            "DJANGO_SETTINGS_MODULE": "shop.settings.production",
            "DJANGO_DEBUG": "False",
            "HOSTS": "127.0.0.1,localhost",
        },
        others={
            "services": {"db": "postgresql"},
            "setup": ".venv/bin/python site/manage.py migrate --noinput >/dev/null",
        },
    ),
    "Django whose database is named otherwise": Case(
        {
            "requirements.txt": "django\ngunicorn\nmysqlclient\n",
            "manage.py": MANAGE,
            "shop/settings.py": 'HOST = os.environ["SQL_HOST"]\nUSER = env("SQL_USER")\n',
        },
        f"SQL_HOST=$DB_HOST SQL_USER=$DB_USER .venv/bin/gunicorn shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt",
        others={
            "services": {"db": "mariadb"},
            "setup": "export SQL_HOST=$DB_HOST SQL_USER=$DB_USER && "
            ".venv/bin/python manage.py migrate --noinput >/dev/null",
            "doubts": (),
        },
    ),
    "Django whose database's address nobody reads": Case(
        {
            "requirements.txt": "django\ngunicorn\npsycopg\n",
            "manage.py": MANAGE,
            "shop/settings.py": 'HOST = os.environ["WHERE_DATA_IS"]\n',
        },
        f".venv/bin/gunicorn shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt",
        says=(
            "its settings want WHERE_DATA_IS",
            "it needs postgresql, and no variable for its address was found",
        ),
    ),
    "Flask with SQLAlchemy and migrations, in a file unless told otherwise": Case(
        {
            "requirements.txt": "Flask\nFlask-Migrate\nFlask-SQLAlchemy\npsycopg2-binary\n",
            "blog.py": "from shop import create_app\nfrom flask import Flask\napp = create_app()\n",
            "shop/__init__.py": "from flask import Flask\ndef create_app(config=None): ...\n",
            "shop/cli.py": "def register(app):\n    @app.cli.command('seed')\n"
            "    @click.option('--notes')\n    def fill(notes): ...\n",
            "config.py": "URL = environ.get('DATABASE_URL') or 'sqlite:///app.db'\n",
            "migrations/env.py": "",
        },
        "DATABASE_URL=postgresql+psycopg2:${DATABASE_URL#*:} "
        f".venv/bin/gunicorn blog:app {GUNICORN}",
        f"{VENV} -r requirements.txt gunicorn",
        says=("DATABASE_URL is set, so its database is postgresql and no file",),
        others={
            "services": {"db": "postgresql"},
            "setup": "export DATABASE_URL=postgresql+psycopg2:${DATABASE_URL#*:} && "
            ".venv/bin/flask --app blog:app db upgrade >/dev/null && "
            ".venv/bin/flask --app blog:app seed >/dev/null",
            "prepare": None,
        },
    ),
    "FastAPI with Alembic, and a driver that SQLAlchemy has to be told": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\nsqlalchemy[asyncio]\nasyncpg\nalembic\n",
            "main.py": f'{FASTAPI}URL = os.environ["DATABASE_URL"]\n',
            "alembic.ini": "[alembic]\nscript_location = alembic\n",
            "scripts/seed.py": "",
        },
        "DATABASE_URL=postgresql+asyncpg:${DATABASE_URL#*:} "
        f".venv/bin/uvicorn main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
        others={
            "services": {"db": "postgresql"},
            "setup": "export DATABASE_URL=postgresql+asyncpg:${DATABASE_URL#*:} && "
            ".venv/bin/alembic upgrade head >/dev/null && .venv/bin/python -m scripts.seed "
            ">/dev/null",
        },
    ),
    "FastAPI in a package with a program that seeds, and one that only looks like it": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\npsycopg\n",
            "app/__init__.py": "",
            "app/main.py": f'{FASTAPI}URL = os.environ["DATABASE_URL"]\n',
            "app/seed.py": "def seed(): ...\n",
            "app/initial_data.py": "if __name__ == '__main__':\n    main()\n",
        },
        f".venv/bin/uvicorn app.main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
        others={
            "services": {"db": "postgresql"},
            "setup": ".venv/bin/python -m app.initial_data >/dev/null",
        },
    ),
    "Flask whose function is its command, with a database in a file": Case(
        {
            "requirements.txt": "Flask\nFlask-Migrate\ngunicorn\n",
            "app.py": f"{FLASK}URL = 'sqlite:///app.db'\n@shop.cli.command()\ndef seed_db(): ...\n",
            "migrations/env.py": "",
        },
        f".venv/bin/gunicorn app:shop {GUNICORN}",
        f"{VENV} -r requirements.txt && .venv/bin/flask --app app:shop db upgrade >/dev/null"
        " && .venv/bin/flask --app app:shop seed-db >/dev/null",
        says=("its database is a file: build fills it",),
        others={"prepare": ".venv/bin/flask --app app:shop db upgrade >/dev/null", "setup": None},
    ),
    "Django with a database server, unless it is told otherwise": Case(
        {
            "requirements.txt": "django\ngunicorn\npsycopg2-binary\n",
            "manage.py": MANAGE,
            "shop/settings.py": "DEBUG = False\nif os.getenv('USE_SQLITE') == 'true':\n"
            "    DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3'}}\nelse:\n"
            "    DATABASES = {'default': {'ENGINE': 'django.db.backends.postgresql',\n"
            "        'NAME': os.getenv('POSTGRES_DB'), 'HOST': os.getenv('DB_HOST')}}\n",
        },
        f"POSTGRES_DB=$DB_NAME .venv/bin/gunicorn shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt",
        says=("DB_HOST is set, so its database is postgresql and no file",),
        others={
            "services": {"db": "postgresql"},
            "setup": "export POSTGRES_DB=$DB_NAME && .venv/bin/python manage.py migrate --noinput "
            ">/dev/null",
            "prepare": None,
        },
    ),
    "Django that leads to https, and says by what it knows that": Case(
        {
            "requirements.txt": "django\ngunicorn\n",
            "manage.py": MANAGE,
            "shop/settings.py": "DEBUG = False\nALLOWED_HOSTS = ['*']\nsqlite3 = 1\n"
            "SECURE_SSL_REDIRECT = env.bool('A', default=True)\n"
            "SECURE_PROXY_SSL_HEADER = ('HTTP_X_FORWARDED_PROTO', 'https')\n",
        },
        f".venv/bin/gunicorn shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt",
        others={"headers": {"X-Forwarded-Proto": "https"}},
    ),
    "Django that answers to a host": Case(
        {
            "requirements.txt": "django\ngunicorn\n",
            "manage.py": MANAGE,
            "shop/settings.py": 'DEBUG = False\nALLOWED_HOSTS = [\n    ".example.org",\n]\nsqlite3',
        },
        f".venv/bin/gunicorn shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt",
        others={"headers": {"Host": "example.org"}},
    ),
}


def test_settings_for_production_that_are_not_whole_are_not_taken(tmp_path: Path) -> None:
    files: Files = {
        "requirements.txt": "django\ngunicorn\n",
        "manage.py": MANAGE,
        "shop/settings/__init__.py": "INSTALLED_APPS = []\n",
        "shop/settings/production.py": "from shop.settings import HOSTS\nDEBUG = False\n",
        "shop/wsgi.py": "",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert "DJANGO_SETTINGS_MODULE" not in found.environment
    assert "shop.settings.production has no applications: shop.settings is taken" in found.notes


def test_the_list_of_an_image_in_another_folder_is_installed(tmp_path: Path) -> None:
    files: Files = {
        "pyproject.toml": "[tool.ruff]\n",
        "infra/docker/Dockerfile": "COPY infra/requirements/prod.txt ./requirements/\n"
        "RUN pip install --no-cache-dir -r requirements/prod.txt\n",
        "infra/requirements/prod.txt": "fastapi\nuvicorn\npsycopg2\n",
        "main.py": "app = FastAPI()\nos.environ['DATABASE_URL']\n",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.build
    assert "pip install --quiet -r infra/requirements/prod.txt" in found.build
    assert found.services == {"db": "postgresql"}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_of_python_is_known(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])


def test_applications_among_examples_are_for_you_to_choose(tmp_path: Path) -> None:
    files = {f"examples/{it}/{name}": text for it in "ab" for name, text in REQUIRED.items()}
    found = choices(tmp_path, {"pyproject.toml": "[project]\ndependencies = []\n", **files})
    assert list(found) == ["examples/a", "examples/b"]


@pytest.mark.parametrize("tool", ["uv", "poetry", "pipenv"])
def test_a_tool_that_is_not_here_comes_by_pip(
    tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    lock = {"uv": "uv.lock", "poetry": "poetry.lock", "pipenv": "Pipfile.lock"}[tool]
    check(
        tmp_path,
        Case(
            {lock: "{}", "requirements.txt": "gunicorn\n", "app.py": FLASK},
            f".venv/bin/gunicorn app:shop {GUNICORN}",
            f"{TOOLS} {tool} && "
            + {
                "uv": ".tools/bin/uv sync --quiet --frozen",
                "poetry": POETRY.replace(" poetry", " .tools/bin/poetry"),
                "pipenv": "PIPENV_VENV_IN_PROJECT=1 .tools/bin/pipenv sync",
            }[tool],
            says=(f"{tool} isn't installed here: pip gets it",),
        ),
    )


def test_a_framework_without_an_application_is_said(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("flask\n")
    found = find_app(tmp_path)
    assert found
    assert not found.is_whole
    assert "it needs flask, and no application object was found" in found.doubts[0]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".python-version", "3.99\n"),
        ("runtime.txt", "python-3.99.1\n"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.99"\n'),
        ("Pipfile", '[requires]\npython_version = "3.99"\n'),
    ],
)
def test_the_python_that_is_wanted_makes_the_environment_or_is_named(
    tmp_path: Path, file: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_text(text)
    app = FoundApp("x", build=f"{VENV} -r requirements.txt")
    built = "python3.99 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt"
    assert with_its_python(app, tmp_path).build == built
    shim = tmp_path / "shims/python3.99"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    here = {"python3": "/usr/bin/python3", "python3.99": str(shim), str(shim): str(shim)}
    monkeypatch.setattr("shutil.which", lambda name, **_: here.get(name))
    found = with_its_python(app, tmp_path)
    assert found.build == (
        "python3 -m venv .tools && .tools/bin/pip install --quiet uv && .tools/bin/uv venv --quiet "
        "--seed --python 3.99 .venv && .venv/bin/pip install --quiet -r requirements.txt"
    )
    assert found.notes[0].startswith(f"{file} has Python 3.99, and python3 is 3.")
    (tmp_path / file).write_text(text.replace("3.99", "3.6"))
    assert with_its_python(app, tmp_path) == app
    (tmp_path / file).unlink()
    (tmp_path / "Dockerfile").write_text("FROM python:3.8-slim\n")
    makes = "(.tools/bin/uv venv --quiet --seed --python 3.8 .venv || python3 -m venv .venv) && "
    assert makes in (with_its_python(app, tmp_path).build or "")
    (tmp_path / "Dockerfile").write_text("FROM python:3.6-slim\n")
    (doubt,) = with_its_python(app, tmp_path).doubts
    assert doubt.startswith("Dockerfile has Python 3.6, and python3 is 3.")
