"""Exit codes, as documented in `webdyno --help`."""

from enum import IntEnum


class Exit(IntEnum):
    """What the end of the process says to a script."""

    OK = 0
    INVALID = 1
    MISTAKE = 2
    FAILED = 3
    INTERRUPTED = 130
