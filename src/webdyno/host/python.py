"""How Python starts Python: nothing is imported from the current folder, whoever wrote into it.

Without these flags a `json.py` there would be imported in place of the library's, as the caller.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def python_module(module: str, python: str | None = None) -> list[str]:
    """Give the words that run an installed module, by this Python or another one with webdyno."""
    return [python or sys.executable, "-P", "-m", module]


def python_file(file: str) -> list[str]:
    """Give the words that run one file, which imports Python's own library alone."""
    return [sys.executable, "-I", "-S", file]


@contextmanager
def from_no_folder() -> Iterator[None]:
    """Have the processes that Python starts by itself import nothing from the current folder.

    `multiprocessing` starts them by `-c`. Programs of users aren't to inherit that.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before
