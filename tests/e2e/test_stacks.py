"""Real servers: they start, answer rightly, fail with clear messages, and leave nothing behind."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ordinary_user import NOBODY, SYSTEM_PYTHON, needs_ordinary_user
from variants import further
from waiting import wait_until
from webdyno.config import Catalogue
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import home_folder
from webdyno.servers.starting import open_stack

DRIVER = Path(__file__).parent / "driver.py"


def get(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 (our own server)
        return response.status, response.read()


def test_settings_reach_the_server(catalogue: Catalogue, testbed: Testbed, tmp_path: Path) -> None:
    settings = {"workers": 3}
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with open_stack(stack, settings, site, folder=tmp_path, testbed=testbed) as running:
        # The first worker may answer before the last is there.
        wait_until(lambda: len(running.pids()) == 1 + 3)
        assert running.facts()["workers"] == "3 processes"


def test_a_deep_temporary_folder(
    catalogue: Catalogue, testbed: Testbed, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = open_folder / ("d" * 75) / ("e" * 75)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    stack, site = catalogue.stack("nginx-memcached"), catalogue.site("static")
    with open_stack(stack, {}, site, folder=deep / "kept", testbed=testbed) as running:
        assert get(running.url + "/hello.txt") == (200, b"Hello, World!")


def test_two_at_the_same_time_do_not_interfere(
    catalogue: Catalogue, testbed: Testbed, tmp_path: Path
) -> None:
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with open_stack(stack, {}, site, folder=tmp_path / "a", testbed=testbed) as one:
        with open_stack(stack, {}, site, folder=tmp_path / "b", testbed=testbed) as other:
            assert one.url != other.url
        assert get(one.url + "/hello.txt") == (200, b"Hello, World!")
        one.check_alive()


def start_driver(stack: str, site: str) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    driver = subprocess.Popen(
        [sys.executable, str(DRIVER), stack, site],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert driver.stdout is not None
    with driver.stdout:
        return driver, json.loads(driver.stdout.readline())


@pytest.mark.parametrize(
    ("stack", "site"),
    [
        further("nginx", "static"),
        further("apache-event", "static"),
        ("nginx-phpfpm", "hello-php"),
    ],
)
@pytest.mark.parametrize("how", [signal.SIGKILL, further(signal.SIGTERM), signal.SIGINT])
def test_a_killed_or_interrupted_webdyno_leaves_nothing(
    stack: str, site: str, how: signal.Signals
) -> None:
    driver, said = start_driver(stack, site)
    assert get(said["url"] + "/hello.txt")[0] == 200
    os.killpg(driver.pid, how)  # as a terminal does it: to all processes in the foreground
    driver.wait(20)
    pids = [*said["pids"], *said["wardens"]]
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), "processes are left")
    assert said["group"] is None or not Path(said["group"]).exists()


@pytest.fixture
def open_scratch() -> Iterator[Path]:
    """A folder that everybody may write to, unlike pytest's."""
    folder = Path(f"/tmp/webdyno-test-{os.getpid()}")  # noqa: S108
    folder.mkdir()
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@needs_ordinary_user
@pytest.mark.parametrize(
    ("stack", "site"),
    [
        ("nginx", "static"),
        further("apache-prefork-modphp", "hello-php"),
        ("nginx-phpfpm", "frontpage"),
        further("node", "spin"),
        further("redis", "keys"),
    ],
)
def test_an_ordinary_user_can_start_it(stack: str, site: str, open_scratch: Path) -> None:
    """A child process gives up root for good and starts a stack from what it imported before."""
    "localhost".encode("idna")  # loads a module that the child may not be able to read
    child = os.fork()
    if child == 0:
        try:
            catalogue = Catalogue.load()
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            tempfile.tempdir = str(open_scratch)
            sys.executable = SYSTEM_PYTHON
            _start_and_ask(catalogue, stack, site, open_scratch)
        except BaseException:  # noqa: BLE001 (pytest must not go on in the child)
            (open_scratch / "said").write_text(traceback.format_exc())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert (open_scratch / "said").read_text() == "it answered"


def _start_and_ask(catalogue: Catalogue, stack: str, name: str, folder: Path) -> None:
    site = catalogue.site(name)
    with open_stack(catalogue.stack(stack), {}, site, folder=folder, testbed=Testbed()) as running:
        if running.url.startswith("http:"):
            status, body = get(running.url + site.ready_path)
            assert site.page(site.ready_path).matches(status, body)
    (folder / "said").write_text("it answered")


def test_files_that_live_as_long_as_a_stack_are_safe_in_a_shared_folder() -> None:
    home = home_folder()
    assert home.stat().st_uid == os.geteuid()
    assert not home.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
