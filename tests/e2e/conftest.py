"""Where users of systems of their own work, and the browser of those who look at pages."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e import forked
from e2e.engines import docker_daemon
from e2e.forerunner import STARTS_WITHIN_S
from e2e.own import SERVER, make_repository
from webdyno.config import Catalogue
from webdyno.host.this_machine import Testbed

if TYPE_CHECKING:  # it takes a while to import
    from playwright.sync_api import Browser


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have one forerunner for all workers."""
    if session.config.getoption("--workers") > 1:
        forked.forerunner()


@pytest.fixture(autouse=True)
def servers_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a start takes longer than anywhere else."""
    monkeypatch.setattr("webdyno.servers.service.READY_WITHIN_S", STARTS_WITHIN_S)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    from e2e.browser import started

    with started() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def daemon() -> Iterator[str]:
    """The address of a daemon of Docker's, or why there is none."""
    with docker_daemon() as address:
        yield address


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue.load()


@pytest.fixture(scope="session")
def testbed() -> Testbed:
    return Testbed()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a small server."""
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


@pytest.fixture
def repository(home: Path) -> Path:
    """A repository with one commit, whose server is built."""
    (home / "webdyno.toml").write_text(
        '[app]\nbuild = "echo built >>../builds; cp server.py built.py"\n'
        f'start = "{sys.executable} built.py $PORT"\n'
    )
    (home / ".gitignore").write_text("built.py\n")
    make_repository(home)
    return home
