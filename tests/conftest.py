"""For all tests: no deadlines, Ctrl-C reaches what they start, and a folder for every user."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# What takes long here says nothing: the machine is shared.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

# A shell's background jobs ignore Ctrl-C, and so would every program that they start; the tests
# that interrupt webdyno would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Unlike pytest's own, which root alone may enter."""
    folder = Path(tempfile.mkdtemp(prefix="webdyno-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
