"""What goes wrong with running servers, told with the end of their own log."""

from pathlib import Path

from webdyno.model.mistake import Trouble

SHOWN_LINES = 15
READ_BYTES = 16_384


class StackDied(Trouble):
    """A service didn't start, or died later."""

    def __init__(self, service: str, what: str, log: Path) -> None:
        """Make the message from what happened and the end of the service's log."""
        self.service = service
        """The service's role in the stack."""
        self.what = what
        """What happened, without the log."""
        self.log_tail = end_of_log(log)
        said = "\n".join(f"    {line}" for line in self.log_tail) or "    (nothing)"
        super().__init__(f"{what}; the end of its log ({log}):\n{said}")


def end_of_log(log: Path) -> list[str]:
    """Give the last lines of a log; none when it can't be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - READ_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-SHOWN_LINES:]
