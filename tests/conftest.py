"""For all tests: Ctrl-C reaches what they start, and a folder that every user may enter."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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
