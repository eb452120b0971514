"""A process of its own for a measurement: it can crash, and be interrupted, by itself."""

import json
from collections.abc import Mapping

from webdyno.host.python import python_module


def words_of(call: str, arguments: Mapping[str, object], *, allow_commands: bool) -> list[str]:
    """Give the program that makes one call of the Python API, such as `compare`.

    `allow_commands`: whether a person agreed to run what the arguments name, which may be commands.
    It ends with the exit codes of the command line: 0 where something was measured to its end,
    whatever came of it. Arguments are what JSON can hold; paths become texts.
    """
    given = json.dumps({**arguments, "allow_commands": allow_commands}, default=str)
    return [*python_module("webdyno.interfaces.python"), call, given]
