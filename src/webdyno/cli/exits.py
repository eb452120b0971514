"""Exit codes, as documented in `webdyno --help`."""

from enum import IntEnum


class Exit(IntEnum):
    """What the end of the process says to a script."""

    OK = 0
    INVALID = 1
    MISTAKE = 2
    FAILED = 3
    WORSE = 4
    """Of `webdyno compare` and `webdyno gate`: something became worse, surely, and by more than is
    tolerated."""
    UNDECIDED = 5
    """Of the same two: nothing surely became worse, and nothing surely didn't."""
    INTERRUPTED = 130
    NOT_READ = 141
    """Nobody reads the output any more, as in `webdyno report RUN | head`: 128 + SIGPIPE."""
