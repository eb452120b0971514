"""A folder that every user may enter."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Unlike pytest's own, which root alone may enter."""
    folder = Path(tempfile.mkdtemp(prefix="webdyno-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
