"""For all tests.

No deadlines, Ctrl-C, a folder for every user, and what neighbours may invalidate.
"""

import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from neighbours import Neighbours
from webdyno.core.experiment import Experiment
from webdyno.core.hiding import SECRETS
from webdyno.core.records import RECORD

pytest_plugins = ["workers"]

# What takes long here says nothing: the machine is shared.
settings.register_profile("many", deadline=None)
settings.register_profile("few", deadline=None, max_examples=20)
settings.load_profile("many")

# A shell's background jobs ignore Ctrl-C, and so would every program that they start; the tests
# that interrupt webdyno would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nothing_of_other_tests() -> None:
    """Have a process know no secrets, and nothing agreed to: both stay known to it."""
    SECRETS.forget()
    if caller := sys.modules.get("webdyno.launch.caller"):
        caller._AGREED.clear()


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Unlike pytest's own, which root alone may enter; others are there who may."""
    monkeypatch.setattr("webdyno.core.whose.others_are_here", lambda: True)
    folder = Path(tempfile.mkdtemp(prefix="webdyno-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Work out once for all workers how the largest models are read."""
    if session.config.getoption("--workers") > 1:
        Experiment.model_rebuild()
        RECORD.rebuild()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Give scripts/test a flag for its second try."""
    reported = "skip tests that measure and fail while other machines have the CPUs"
    parser.addoption("--last-try", action="store_true", help=reported)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Skip what measured wrongly, with a reason, where nobody could have measured rightly."""
    if item.get_closest_marker("measures") is None or not item.config.getoption("--last-try"):
        return (yield)
    neighbours = Neighbours()
    try:
        return (yield)
    except AssertionError as failure:
        took = neighbours.took()
        if took is None:
            raise
        pytest.skip(f"{took}; here it failed with: {str(failure)[:500]}")
