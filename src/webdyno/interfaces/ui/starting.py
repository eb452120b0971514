"""Begins runs as their own processes, which end with the page's server."""

import logging
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from webdyno.core.errors import OperationError, UserError
from webdyno.host.children import ending_with_us, interrupt
from webdyno.host.python import words_of

logger = logging.getLogger(__name__)

Agrees = Callable[[str], bool]
"""Asks a person whether something may be done."""
END_WITHIN_S = 30.0
LOG_BYTES = 4_000


class Begun(NamedTuple):
    """A run that was begun from the page."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        """The end of what it said."""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - LOG_BYTES))
            return file.read(LOG_BYTES).decode(errors="replace")
        return ""


class Starter:
    """One run at a time: two on one machine measure each other."""

    def __init__(self, root: Path, agrees: Agrees | None = None) -> None:
        """Begin runs in that folder; `agrees` asks on the terminal, None where nobody is there."""
        self._root = root
        self._agrees = agrees
        self._asking = Lock()
        self.last: Begun | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a run that was begun here goes on."""
        return self.last is not None and self.last.process.poll() is None

    def begin(
        self, call: str, arguments: Mapping[str, object], own: Sequence[object] = ()
    ) -> Begun:
        """Begin a run by a call of the Python API; raise UserError while another one goes on.

        `own` are systems that run what their author wrote: they take a yes on the terminal, as
        whoever has a page's address may not be who started it.
        """
        if not self._asking.acquire(blocking=False):
            raise UserError("another run waits for a yes on the terminal")
        try:
            if self.is_busy:
                raise UserError(
                    "another run is in progress, and two at once would distort each other: wait "
                    "for it"
                )
            if own:
                self._ask(call, own)
            return self._begin(call, arguments, allow_commands=bool(own))
        finally:
            self._asking.release()

    def _ask(self, call: str, own: Sequence[object]) -> None:
        named = " and ".join(map(str, own))
        if self._agrees is None:
            raise UserError(
                f"{named}: runs what its author wrote, which takes a yes on the terminal, and "
                f"`webdyno ui` has none here: type `webdyno {call} …` in one"
            )
        if not self._agrees(f"a page asks to build and run {named}; do that?"):
            raise UserError(f"{named}: not agreed to on the terminal; nothing was run")

    def _begin(self, call: str, arguments: Mapping[str, object], *, allow_commands: bool) -> Begun:
        self._root.mkdir(parents=True, exist_ok=True)
        name = f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-{call}"
        log = self._root / f".{name}.log"
        given = {**arguments, "output": self._root / name, "report": True}
        try:
            with log.open("xb") as output:  # never into what somebody else has put there
                process = subprocess.Popen(
                    [
                        *ending_with_us("TERM"),
                        *words_of(call, given, allow_commands=allow_commands),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise OperationError(f"{log}: can't begin a run: {error.strerror}") from error
        logger.debug("process %d is the run %s", process.pid, name)
        self.last = Begun(name, process, log)
        return self.last

    def interrupt(self) -> None:
        """Press Ctrl-C: the run ends with what there is."""
        if self.last is not None and self.is_busy:
            self.last.process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Interrupt what goes on and wait for it to clean up."""
        if self.last is not None:
            interrupt(self.last.process, END_WITHIN_S)
