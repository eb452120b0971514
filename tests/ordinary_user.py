"""Tests whose child process becomes an ordinary user, who may read less than root."""

import os
from pathlib import Path

import pytest

NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"
"""A Python that everybody may start; ours may lie in root's home."""
ENTER = 0o001


def _everybody_may_read() -> bool:
    return all(folder.stat().st_mode & ENTER for folder in Path(__file__).parents)


needs_ordinary_user = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(SYSTEM_PYTHON).exists() or not _everybody_may_read(),
    reason="needs root to begin with, Debian's Python, and a checkout that everybody may read",
)
