"""Waiting in tests for what comes by itself."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S, LOOKS_EVERY_S = 120.0, 0.02
GONE_WITHIN_S = 20.0


def wait_until(holds: Callable[[], object], what: str = "it never came to that") -> None:
    """Wait until something is so; a test fails with these words where that takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(LOOKS_EVERY_S)


def what_stays(look: Callable[[], list[T]]) -> list[T]:
    """Return what there still is, after giving it time to go."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(LOOKS_EVERY_S)
    return found
