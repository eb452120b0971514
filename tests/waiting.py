"""Waiting in tests for what comes by itself."""

import time
from collections.abc import Callable

PATIENCE_S, LOOKS_EVERY_S = 120.0, 0.02


def wait_until(holds: Callable[[], object], what: str = "it never came to that") -> None:
    """Wait until something is so; a test fails with these words where that takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(LOOKS_EVERY_S)
