"""What makes and fills tables of Python applications, and where their modules are looked up."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check
from systems.layouts.test_python_layouts import FLASK, GUNICORN, UVICORN, VENV
from webdyno.systems.layouts.app import FOR_MEASURING

MANAGE = "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings.dev')\n"
CASES = {
    "Django whose settings for production can't be loaded": Case(
        {
            "requirements.txt": "django\ngunicorn\n",
            "manage.py": MANAGE,
            "shop/settings/base.py": "DEBUG = True\nSECRET_KEY = get_env_variable('SECRET_KEY')\n"
            "def get_env_variable(name): ...\nWSGI_APPLICATION = 'shop.wsgi.application'\n",
            "shop/settings/dev.py": "from .base import *\nDEBUG = False\n",
            "shop/settings/production.py": "from .base import *\nNAME = get_secret('A')\n",
            "shop/wsgi.py": MANAGE.replace("dev", "production"),
        },
        f".venv/bin/gunicorn shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt",
        says=("shop.settings.production calls get_secret, which isn't there",),
        others={
            "environment": {
                "DJANGO_SETTINGS_MODULE": "shop.settings.dev",
                "SECRET_KEY": FOR_MEASURING,
            },
            "doubts": (),
        },
    ),
    "Django with an example of what its settings want": Case(
        {
            "requirements.txt": "django\ngunicorn\n",
            "manage.py": MANAGE,
            "shop/settings/dev.py": "ADMIN_URL = config('ADMIN_URL')\nX = config('OTHER')\n",
            ".env.example": "ADMIN_URL=admin/\n",
        },
        f".venv/bin/gunicorn shop.wsgi {GUNICORN}",
        f"{VENV} -r requirements.txt",
        says=("its settings want OTHER:",),
    ),
    "Flask with commands of Click's that make tables and fill them": Case(
        {
            "requirements.txt": "Flask\ngunicorn\npsycopg2\n",
            "app.py": f"{FLASK}connect(os.environ['DATABASE_URL'])\n",
            "shop/commands.py": "@click.command()\n@with_appcontext\ndef createdb(): ...\n"
            "@click.command()\n@with_appcontext\ndef seed(): ...\n",
            "tool.py": "@click.command()\ndef populate(): ...\n",
        },
        f".venv/bin/gunicorn app:shop {GUNICORN}",
        f"{VENV} -r requirements.txt",
        others={
            "setup": ".venv/bin/flask --app app:shop createdb >/dev/null"
            " && .venv/bin/flask --app app:shop seed >/dev/null",
        },
    ),
    "a module that imports its package from a folder that is one as well": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\nalembic\nasyncpg\n",
            "alembic.ini": "",
            "shop/__init__.py": "",
            "shop/app/__init__.py": "",
            "shop/app/main.py": "from app.config import URL\napp = FastAPI()\n",
            "shop/app/config.py": "URL = os.environ['DATABASE_URL']\n",
        },
        f".venv/bin/uvicorn --app-dir shop app.main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
        others={"setup": "PYTHONPATH=shop .venv/bin/alembic upgrade head >/dev/null"},
    ),
    "Alembic whose scripts import what it doesn't look up": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\nalembic\nasyncpg\n",
            "alembic.ini": "script_location = shop/db/migrations\n",
            "shop/db/migrations/env.py": "from alembic import context\nimport shop.config\n",
            "shop/main.py": "from shop.config import URL\napp = FastAPI()\n",
            "shop/config.py": "URL = os.environ['DATABASE_URL']\n",
        },
        f".venv/bin/uvicorn shop.main:app {UVICORN}",
        f"{VENV} -r requirements.txt",
        others={"setup": "PYTHONPATH=. .venv/bin/alembic upgrade head >/dev/null"},
    ),
    "the Python of a Dockerfile, where it is older": Case(
        {
            "requirements.txt": "fastapi\nuvicorn\n",
            "main.py": "app = FastAPI()\n",
            "docker/app/Dockerfile": "FROM a/uvicorn:python3.5-slim\nCOPY . .\n",
        },
        f".venv/bin/uvicorn main:app {UVICORN}",
        "python3.5 -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt",
    ),
    "packages of a plugin, which Pipenv doesn't install": Case(
        {
            "Pipfile": '[packages]\nflask = "*"\ngunicorn = "*"\n[plugin-mysql]\npymysql = "*"\n',
            "app.py": f"{FLASK}URL = os.environ.get('DATABASE_URL', 'sqlite:///a.db')\n",
            ".env.example": "# DATABASE_URL=mysql://x\n",
        },
        f".venv/bin/gunicorn app:shop {GUNICORN}",
        "PIPENV_VENV_IN_PROJECT=1 pipenv install",
        others={"services": {}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_tables_are_made_and_filled(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])
