"""The example applications, as a new user would try them: two commands and no file to write."""

import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.commands import QUICK, run_rounds, webdyno_here
from variants import further
from webdyno.core.errors import Exit

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("express", *map(further, ("go", "fastapi", "flask", "rack")))


def made(name: str, folder: Path) -> Path:
    """Make an example's repository, and its `webdyno.toml`."""
    app = folder / "app"
    subprocess.run(["sh", EXAMPLES / f"{name}.sh", app], check=True, capture_output=True)
    done = webdyno_here("init", folder=app)
    assert done.returncode == Exit.OK, done.stderr
    return app


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_itself_how_it_is_measured(name: str, tmp_path: Path) -> None:
    app = made(name, tmp_path)
    written = (app / "webdyno.toml").read_text()
    assert all(f'path = "{path}"' in written for path in ("/", "/items", "/search"))
    done = webdyno_here("gate", "--base=start", "--head=documentation", folder=app)
    assert done.returncode == Exit.OK, done.stderr
    assert "only documentation changed (README.md)" in done.stdout


def test_an_example_is_built_and_asked_everything(tmp_path: Path) -> None:
    """One of five: the others are built of what a registry has, or for half a minute."""
    if shutil.which("puma") is None:
        pytest.skip("there is no puma here")
    app = made("rack", tmp_path)
    run_rounds(
        1, "compare", "rev:slower", "rev:start", "--set=load.connections=4", *QUICK, folder=app
    )
    report = webdyno_here("report", "run", "--verbose", folder=app)
    assert "/search" in report.stdout
