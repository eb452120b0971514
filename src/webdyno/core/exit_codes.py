"""What the end of the process says to a script: the same in all commands."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code; `MEANINGS` says for people what each of them means."""

    OK = 0
    INVALID = 1
    USER_ERROR = 2
    FAILED = 3
    WORSE = 4
    INCONCLUSIVE = 5
    INTERRUPTED = 130
    NOT_READ = 141
    """128 + SIGPIPE, as in `webdyno report RUN | head`."""


MEANINGS = {
    Exit.OK: "done; no limit is exceeded",
    Exit.INVALID: "invalid: what was measured can't be trusted",
    Exit.USER_ERROR: "error in the command, a file or a setting",
    Exit.FAILED: "a server, a tool or the disk failed on this machine",
    Exit.WORSE: "worse than the limit (95% confidence), or --fail-if holds",
    Exit.INCONCLUSIVE: "inconclusive: too little data to say whether a limit is exceeded",
    Exit.INTERRUPTED: "interrupted; what was measured is kept",
    Exit.NOT_READ: "output pipe closed",
}
