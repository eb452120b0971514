"""What makes and fills tables of Python applications, and where their modules are looked up."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check
from systems.layouts.test_python_layouts import FLASK, GUNICORN, UVICORN, VENV

CASES = {
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
