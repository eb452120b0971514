"""Migrations, seeds and workers of the scripts that containers start by."""

from pathlib import Path

from systems.layouts.laid_out import Files, laid_out
from webdyno.systems.layouts import find_app

FASTAPI: Files = {
    "requirements.txt": "fastapi\nuvicorn\nasyncpg\n",
    "main.py": "from fastapi import FastAPI\napp = FastAPI()\nurl = os.environ['DATABASE_URL']\n",
}


def test_a_prestart_script_fills_the_database(tmp_path: Path) -> None:
    files: Files = {
        **FASTAPI,
        "Dockerfile": 'FROM x\nCMD ["bash", "/app/scripts/start.sh"]\n',
        "scripts/start.sh": "#!/bin/sh\nset -e\nscripts/prestart.sh\nexec uvicorn main:app -w 4 "
        "--workers 4\n",
        "scripts/prestart.sh": "# alembic upgrade never\nuv run alembic upgrade head\n"
        "python -m app.initial_data\npython /srv/seed.py\n"
        'if [ "$SEED" ]; then\n  python -m app.seed "$SEED"\nfi\n',
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.setup == ".venv/bin/alembic upgrade head && .venv/bin/python -m app.initial_data"
    assert found.start == ".venv/bin/uvicorn main:app --host 127.0.0.1 --port $PORT --workers 4"
    assert "scripts/start.sh migrates by .venv/bin/alembic upgrade head" in found.notes
    assert "scripts/start.sh starts 4 workers" in found.notes


def test_a_seed_in_the_command_of_a_dockerfile_is_found(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {"dependencies": {"pg": "8"}, "scripts": {"start": "node s.js"}},
        "s.js": "process.env.DATABASE_URL; app.listen(process.env.PORT)\n",
        "Dockerfile": "FROM x\nCMD npx prisma migrate deploy && node seed.js && node s.js\n",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.setup == "npx prisma migrate deploy && node seed.js"
    assert "Dockerfile fills its tables by node seed.js" in found.notes


def test_what_the_layout_knows_by_itself_stays(tmp_path: Path) -> None:
    files: Files = {
        **FASTAPI,
        "requirements.txt": "fastapi\nuvicorn\nasyncpg\nalembic\n",
        "alembic.ini": "",
        "scripts/seed.py": "",
        "entrypoint.sh": "alembic upgrade heads\npython -m scripts.seed\n",
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert found.setup == (
        ".venv/bin/alembic upgrade head >/dev/null && .venv/bin/python -m scripts.seed >/dev/null"
    )
