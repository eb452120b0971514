"""How runs begin from the page: by its form, which a stranger may have filled; one at a time."""

import logging
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import make_folder
from webdyno.core.load import MOST_AT_ONCE
from webdyno.host.children import ending_with_us, input_of, interrupt, words_of

logger = logging.getLogger(__name__)

FIELDS = (
    *("stack", "own_stack", "baseline", "own_baseline"),
    *("site", "path", "time", "connections", "rate"),
)
SYSTEMS = {"system": "stack", "baseline": "baseline"}
"""By the API's name of it: the field of the page."""
OWN_FIELD = "own_"
"""How the fields begin in which systems of one's own are named; they come before the others."""
RUNS_ALREADY = "url:"
OWN = ("rev:", "conf:", RUNS_ALREADY)
"""Systems of the user's own that may be named on a page; commands and images may not."""
CONFIGURATION = re.compile(r"conf:(?P<server>(?:[a-z]+:)?)(?P<file>.*?)(?P<port>(?:#[0-9]+)?)")


class Asked(NamedTuple):
    """What is to be called, and what it takes a yes for."""

    arguments: Mapping[str, object]
    own: list[object]
    """What runs more than webdyno has, and doesn't run already."""


def comparison_asked(given: Mapping[str, str], catalogue: Catalogue, root: Path) -> Asked:
    """Return a comparison as it was asked for; raise UserError for what no page may begin."""
    if not all(map(str.isprintable, given.values())):
        raise UserError("these fields take no control characters: type them again")
    if given["path"] and not given["path"].startswith("/"):
        raise UserError(f"the path {given['path']!r:.60} should begin with /")
    systems = {
        key: _system(given[OWN_FIELD + field] or given[field], catalogue, root)
        for key, field in SYSTEMS.items()
    }
    arguments: dict[str, object] = dict(systems)
    if given["path"]:
        arguments["paths"] = [given["path"]]
    if settings := dict(_load(given)):
        arguments["settings"] = settings
    arguments |= {key: given[key] for key in ("site", "time") if given[key]}
    if catalogue.folders:
        arguments["catalog"] = [folder.absolute() for folder in catalogue.folders]
    own: list[object] = [
        system
        for system in systems.values()
        if system not in catalogue.stacks and not system.startswith(RUNS_ALREADY)
    ]
    return Asked(arguments, own)


def _load(given: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    if connections := given["connections"]:
        yield "load.connections", _whole(connections, "connections")
    if rate := given["rate"]:
        yield "load.loop", "open"
        yield "load.rate_per_s", _whole(rate, "requests per second")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= MOST_AT_ONCE):
        raise UserError(f"{what}: {text!r:.20} should be a number from 1 to {MOST_AT_ONCE:,}")
    return int(text)


def _system(name: str, catalogue: Catalogue, root: Path) -> str:
    """Return a system; raise UserError for what a page may not name.

    A configuration can name programs that its server runs, so it has to lie in the folder.
    """
    if name not in catalogue.stacks and not name.startswith(OWN):
        raise UserError(
            f"{name!r:.60}: the catalog has no such stack; of your own a page may name "
            f"{', '.join(OWN)}, whatever else `webdyno compare` can"
        )
    if not (asked := CONFIGURATION.fullmatch(name)):
        return name
    file = Path(asked["file"]).resolve()
    if not file.is_relative_to(root):
        raise UserError(
            f"{name!r:.200}: lies outside of {root}; put it there, or start the comparison in a "
            "terminal"
        )
    return f"conf:{asked['server']}{file}{asked['port']}"


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
        # A run ends with the thread that began it, which a request's does after seconds.
        self._lasting_thread = ThreadPoolExecutor(1)
        self.last: Begun | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a run that was begun here is under way."""
        return self.last is not None and self.last.process.poll() is None

    def begin(
        self, call: str, arguments: Mapping[str, object], own: Sequence[object] = ()
    ) -> Begun:
        """Begin a run by a call of the Python API; raise UserError during another one.

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
            begun = self._lasting_thread.submit(self._begin, call, arguments, bool(own))
            return begun.result()
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

    def _begin(self, call: str, arguments: Mapping[str, object], allow_commands: bool) -> Begun:
        make_folder(self._root)
        name = f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-{call}"
        log = self._root / f".{name}.log"
        given = {**arguments, "output": self._root / name, "report": True}
        try:
            with (
                log.open("xb") as output,  # never into what somebody else has put there
                input_of(given, allow_commands=allow_commands) as passed,
            ):
                process = subprocess.Popen(
                    [*ending_with_us("TERM"), *words_of(call)],
                    stdin=passed,
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
        """Interrupt the run under way and wait for it to clean up."""
        if self.last is not None:
            interrupt(self.last.process, END_WITHIN_S)
        self._lasting_thread.shutdown()
