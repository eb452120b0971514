"""How Python starts Python: nothing is imported from the current folder, whoever wrote into it.

Without these flags a `json.py` there would be imported in place of the library's, as the caller.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def python_module(module: str, python: str | None = None) -> list[str]:
    """Give the words that run an installed module, by this Python or another one with webdyno."""
    return [python or sys.executable, "-P", "-m", module]


def python_file(file: str) -> list[str]:
    """Give the words that run one file, which imports Python's own library alone."""
    return [sys.executable, "-I", "-S", file]


def words_of(call: str, arguments: Mapping[str, object], *, allow_commands: bool) -> list[str]:
    """Give the program that makes one call of the Python API, such as `compare`.

    `allow_commands`: whether a person agreed to run what the arguments name, which may be commands.
    It ends with the exit codes of the command line: 0 where something was measured to its end,
    whatever came of it. Arguments are what JSON can hold; paths become texts.
    """
    given = json.dumps({**arguments, "allow_commands": allow_commands}, default=str)
    return [*python_module("webdyno.interfaces.python"), call, given]


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
