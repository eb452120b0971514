"""One experiment on several hosts at once: what each measures comes here while it is measured.

Blocks of one comparison never straddle machines, so each host runs all of the experiment, with a
random order of its own. Where a host is lost, what it measured stays here, and another one that has
nothing to do begins anew. The fleet's folder holds the experiment and its part of the catalogue, as
a run's does, and the run of each host: whoever has it can go on.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from webdyno.cluster.host import HostLost, Runner
from webdyno.model.cluster import Ended, Piece
from webdyno.model.point import plan_points
from webdyno.model.records import RECORD
from webdyno.run.folder import HEAD_FILE, RECORDS_FILE, RunFolder
from webdyno.run.session import is_finished

News = Callable[[str, Path], None]
"""Is told a host's name when something new was measured there, with the folder of its run."""


STOP = b'{"kind":"stop"'
"""How the record of a stop begins; see `run.hidden.line_of`."""
MEASURED = (0, 1)
"""Exit codes of a run that came to its end: with a verdict, or with `invalid`."""


@dataclass
class Replicated:
    """What came of the experiment on one host."""

    host: str
    folder: Path
    ended: Ended | None = None
    """None while it goes on, and of a host that was lost or interrupted."""
    lost: str | None = None
    """What is known of a host that was lost."""

    @property
    def came_to_nothing(self) -> bool:
        """Whether its run ended without having measured to its end."""
        return self.ended is not None and self.ended.code not in MEASURED


@dataclass
class Fleet:
    """Hosts that each run one experiment."""

    hosts: Sequence[Runner]
    parcel: Callable[[str], bytes]
    """What a host of that name is given; see `agent.parcel_of`."""
    out: Path
    """Gets a run's folder for each host, called as that is."""
    done: list[Replicated] = field(default_factory=list)
    """All that was begun, in that order."""

    def measure(self, wanted: int, news: News, *, yes: bool) -> None:
        """Run the experiment on so many of the hosts; the others stand by.

        A host that is lost is on record in `done`. At Ctrl-C all hosts are told to stop. For `yes`
        see `agent.replicate`.
        """
        spare = deque(self.hosts)
        with ThreadPoolExecutor(wanted) as pool:
            running = [pool.submit(self._replicate, spare, news, yes) for _ in range(wanted)]
            try:
                wait(running, return_when=FIRST_EXCEPTION)
            finally:
                spare.clear()
                for host in self.hosts:
                    host.interrupt()
        for each in running:
            each.result()

    def _replicate(self, spare: deque[Runner], news: News, yes: bool) -> None:
        """Run it on one host, and where that is lost or can't, on the next one."""
        while spare:
            host = spare.popleft()
            replicated = Replicated(host.name, self.out / host.name)
            self.done.append(replicated)
            try:
                _keep(replicated, host.replicate(self.parcel(host.name), yes=yes), news)
            except HostLost as lost:
                replicated.lost = str(lost)
            if replicated.ended and not replicated.came_to_nothing:
                return


def finished_runs(fleet: Path) -> list[Path]:
    """Name the runs in a fleet's folder that came to their end, whatever their verdict."""
    runs = (RunFolder.open(path.parent) for path in sorted(fleet.glob(f"*/{HEAD_FILE}")))
    return [run.path for run in runs if _stopped(run) or is_finished(run.head, run.records())]


def _stopped(run: RunFolder) -> bool:
    """Whether all points were stopped, which tells without any other record that it is finished."""
    points = {plan.point.number for plan in plan_points(run.head.experiment)}
    with suppress(FileNotFoundError, ValidationError), (run.path / RECORDS_FILE).open("rb") as file:
        return points <= {
            RECORD.validate_json(line).point for line in file if line.startswith(STOP)
        }
    return False


def _keep(it: Replicated, says: Iterator[Piece | Ended], news: News) -> None:
    """Write down what a host says, as it comes."""
    for told in says:
        if isinstance(told, Ended):
            it.ended = told
            return
        _write(it.folder, told)
        if told.file.name == RECORDS_FILE:
            news(it.host, it.folder)


def _write(folder: Path, piece: Piece) -> None:
    if piece.file.is_absolute() or ".." in piece.file.parts:
        raise HostLost(f"it sent a file that is none of the run's: {piece.file}")
    path = folder / piece.file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if piece.start_bytes else "wb") as file:
        file.seek(piece.start_bytes)
        file.write(piece.data)
