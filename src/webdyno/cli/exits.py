"""Exit codes, as documented in `webdyno --help`."""

from enum import IntEnum


class Exit(IntEnum):
    """What the end of the process says to a script."""

    OK = 0
    INVALID = 1
    MISTAKE = 2
    FAILED = 3
    WORSE = 4
    """Something became worse, surely, by more than is tolerated (`webdyno compare`, `gate`), or is
    what `--fail-on` names."""
    UNDECIDED = 5
    """Nothing is surely so, and nothing surely isn't."""
    INTERRUPTED = 130
    NOT_READ = 141
    """Nobody reads the output any more, as in `webdyno report RUN | head`: 128 + SIGPIPE."""
