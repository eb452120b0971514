"""docs/reference/catalog.md: what it says to write works."""

import re
import shlex
import subprocess
import urllib.request
from pathlib import Path

from e2e.commands import QUICK, run_rounds, statuses
from webdyno.config import Catalogue
from webdyno.host.this_machine import Testbed
from webdyno.servers.starting import open_stack

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference/catalog.md"
COMMANDS = re.compile(
    r"^## A worked example.*?^```sh\n(.*?)^webdyno (.*?)^```", re.DOTALL | re.MULTILINE
)
STEP = re.compile(r"^`(mine/\S+)`.*?^```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_one_command_compares_a_server_of_ones_own(open_folder: Path) -> None:
    found = COMMANDS.search(DOCUMENT.read_text())
    assert found
    before, words = found.groups()
    subprocess.run(["/bin/sh", "-c", before], cwd=open_folder, check=True)
    run_rounds(1, *shlex.split(words.replace("\\\n", " ")), *QUICK, folder=open_folder)
    assert statuses(open_folder) == {"200"}


def test_the_worked_example_works(tmp_path: Path) -> None:
    steps = STEP.findall(DOCUMENT.read_text())
    assert len(steps) == 3
    for path, text in steps:
        target = tmp_path / path
        target.parent.mkdir(parents=True)
        target.write_text(text)
    catalogue = Catalogue.load([tmp_path / "mine"])
    stack, site = catalogue.stack("python"), catalogue.site("letter")
    with (
        open_stack(stack, {}, site, folder=tmp_path / "kept", testbed=Testbed()) as running,
        urllib.request.urlopen(f"{running.url}/letter.txt", timeout=5) as response,  # noqa: S310 (our own server)
    ):
        assert response.read() == b"Dear reader,\n"
        assert running.versions()["python"].startswith("3.")
