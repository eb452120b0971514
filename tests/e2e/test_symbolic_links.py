"""Any process of the servers' user may plant symbolic links: root must not follow one.

`python tests/e2e/test_symbolic_links.py 60 50` tries it for 60 s and at least 50 starts.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))
from ordinary_user import SYSTEM_PYTHON, needs_ordinary_user
from variants import further
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import home_folder
from webdyno.servers.starting import open_stack

ATTACKER = Path(__file__).with_name("attacker.py")
SERVICE = """
title = "Python's http.server"
protocol = "http"
folders = ["data", "temp/inner"]
data = "data"
initialise = [["sh", "-c", "echo made > {{ server.folder }}/data/made"]]
files."config.txt" = "config.txt.j2"
start = [
    "{{ needs.binary }}", "-m", "http.server", "--directory", "{{ site.root }}",
    "--bind", "{{ server.host }}", "{{ server.port }}",
]
needs.binary = { command = ["python3"], apt = "python3" }
version = { command = ["{{ needs.binary }}", "--version"], pattern = 'Python (.+)' }
"""
STACK = 'title = "t"\nserves = ["static"]\nfront = "web"\n[services.web]\nservice = "web"\n'
SITE = """
title = "s"
needs = ["static"]
setup = [["sh", "-c", "echo hello > {{ site.root }}/a.txt; echo {{ n }} > {{ site.state }}/b.txt"]]
services.store.service = "web"
[paths."/a.txt"]
body_bytes = 6
"""


def own_catalogue(folder: Path, number: int) -> Catalogue:
    """A small service, and a site whose set-up is run at each start again."""
    texts = {
        "services/web/service.toml": SERVICE,
        "services/web/config.txt.j2": "port {{ server.port }}",
        "stacks/web/stack.toml": STACK,
        "sites/mine/site.toml": SITE.replace("{{ n }}", str(number)),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Catalogue.load([folder])


@contextmanager
def attack(victim: Path) -> Iterator[list[int]]:
    """Let two processes of the servers' user attack; afterwards it gives how often they got in."""
    user = Testbed().user
    assert user
    command = [SYSTEM_PYTHON, "-c", ATTACKER.read_text(), str(home_folder()), str(victim)]
    ids = {"user": user.uid, "group": user.gid, "extra_groups": [user.gid]}
    attackers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/", **ids)  # type: ignore[call-overload]
        for _ in range(2)
    ]
    successes: list[int] = []
    try:
        yield successes
    finally:
        for attacker in attackers:
            attacker.terminate()
            successes.append(int(attacker.communicate()[0] or 0))


def state_of(victim: Path) -> dict[str, object]:
    """Owners, rights and content of all that the attackers are after."""
    found: dict[str, object] = {}
    for path in (victim, *victim.rglob("*")):
        seen = path.lstat()
        content = path.read_text() if path.is_file() else None
        found[str(path)] = (seen.st_uid, seen.st_gid, seen.st_mode, content)
    return found


def race(folder: Path, seconds: float, starts: int) -> tuple[bool, "Counter[str]"]:
    """Start stacks while attackers are at work; whether all is as it was, and what happened."""
    victim = folder / "victim"
    (victim / "inner").mkdir(parents=True)
    for name in ("file", "nginx.conf", "config.txt", "inner/file"):
        (victim / name).write_text("root's own")
    before = state_of(victim)
    until, happened = time.monotonic() + seconds, Counter[str]()
    with attack(victim) as successes:
        while time.monotonic() < until or sum(happened.values()) < starts:
            number = sum(happened.values())
            catalogue = own_catalogue(folder / "catalogue", number)
            mine = catalogue.stack("web"), catalogue.site("mine")
            static = catalogue.stack("nginx"), catalogue.site("static")
            stack, site = mine if number % 3 == 0 else static
            kept = folder / "kept" / str(number)
            try:
                with open_stack(stack, {}, site, folder=kept, testbed=Testbed()):
                    happened["started"] += 1
            except OperationError as error:
                happened[str(error).splitlines()[0][:60]] += 1
    happened["things swapped by the attackers"] = sum(successes)
    return state_of(victim) == before, happened


@needs_ordinary_user
@pytest.mark.parametrize(("seconds", "starts"), [further(1.0, 2), further(4.0, 5)])
def test_root_follows_no_link(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, starts: int
) -> None:
    """With a stack of each kind at least; attackers take all CPUs meanwhile."""
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    monkeypatch.setattr("webdyno.servers.service.READY_WITHIN_S", 1.0)
    unchanged, happened = race(open_folder, seconds, starts)
    assert unchanged, happened
    assert happened["things swapped by the attackers"], happened


@needs_ordinary_user
def test_whose_folder_a_run_lies_in_leads_root_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He exchanges a round's folder for a link once webdyno has looked at it."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    victim, round_folder = tmp_path / "victim", tmp_path / "round"
    victim.mkdir()
    round_folder.symlink_to(victim)
    os.chown(round_folder, 12345, 12345, follow_symlinks=False)
    catalogue = own_catalogue(tmp_path / "catalogue", 0)
    stack, site = catalogue.stack("web"), catalogue.site("mine")
    with (
        pytest.raises(OperationError, match="a link of user 12345's"),
        open_stack(stack, {}, site, folder=round_folder, testbed=Testbed()),
    ):
        pass
    assert list(victim.iterdir()) == []


if __name__ == "__main__":
    scratch = Path(tempfile.mkdtemp(prefix="webdyno-race-"))
    scratch.chmod(0o755)
    tempfile.tempdir = str(scratch)
    unchanged, happened = race(scratch, float(sys.argv[1]), int(sys.argv[2]))
    for what, times in happened.most_common():
        print(f"{times:5} {what}")  # noqa: T201
    sys.exit("CHANGED" if not unchanged else "unchanged")
