"""A process of its own for a measurement: it can crash, and be interrupted, by itself."""

import json
import sys
from collections.abc import Mapping


def words_of(call: str, arguments: Mapping[str, object]) -> list[str]:
    """Give the program that makes one call of the Python API, such as `compare`.

    It ends with the exit codes of the command line: 0 where something was measured to its end,
    whatever came of it. Arguments are what JSON can hold; paths become texts.
    """
    return [sys.executable, "-m", "webdyno.lab", call, json.dumps(arguments, default=str)]
