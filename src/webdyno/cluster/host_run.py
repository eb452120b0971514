"""What comes of an experiment on another host: written down here while it is measured there."""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from webdyno.cluster.host import HostLost, Runner
from webdyno.model.cluster import Ended, Piece
from webdyno.model.point import plan_points
from webdyno.model.records import RECORD
from webdyno.run.folder import RunFolder
from webdyno.run.records_file import RECORDS_FILE
from webdyno.run.session import is_finished

News = Callable[[str, Path], None]
"""Is told whose run has something new, and its folder."""

STOP = b'{"kind":"stop"'
"""How the record of a stop begins; see `run.hidden.line_of`."""

MEASURED = (0, 1)
"""Exit codes of a run that came to its end: with a verdict, or with `invalid`."""
INTERRUPTED_AGAIN_S = 0.5


@dataclass
class HostRun:
    """A run on a host."""

    host: str
    folder: Path
    label: str
    """What people are told of it by: the host, and at which point it measures if it isn't all."""
    ended: Ended | None = None
    """None while it goes on, and where it was lost or interrupted."""
    lost: str | None = None
    """What is known of a host that was lost."""

    @property
    def measured(self) -> bool:
        """Whether it came to its end."""
        return self.ended is not None and self.ended.code in MEASURED

    @property
    def came_to_nothing(self) -> bool:
        """Whether it ended without having measured to its end."""
        return self.ended is not None and not self.measured

    def follow(self, says: Iterator[Piece | Ended], news: News) -> None:
        """Write down what the host says, as it comes."""
        try:
            for told in says:
                if isinstance(told, Ended):
                    self.ended = told
                    return
                _write(self.folder, told)
                if told.file.name == RECORDS_FILE:
                    news(self.label, self.folder)
        except HostLost as lost:
            self.lost = str(lost)


def end_all(hosts: Sequence[Runner], running: Collection["Future[Any]"]) -> None:
    """Interrupt what still runs on hosts; again and again, as an order may be on its way there."""
    while wait(running, timeout=0).not_done:
        for host in hosts:
            host.interrupt()
        wait(running, timeout=INTERRUPTED_AGAIN_S)


def came_to_its_end(run: RunFolder) -> bool:
    """Whether a run would measure nothing more."""
    return _stopped(run) or is_finished(run.head, run.records())


def _stopped(run: RunFolder) -> bool:
    """Whether all points were stopped, which tells without any other record that it is finished."""
    points = {plan.point.number for plan in plan_points(run.head.experiment)}
    with suppress(FileNotFoundError, ValidationError), (run.path / RECORDS_FILE).open("rb") as file:
        return points <= {
            RECORD.validate_json(line).point for line in file if line.startswith(STOP)
        }
    return False


def _write(folder: Path, piece: Piece) -> None:
    if piece.file.is_absolute() or ".." in piece.file.parts:
        raise HostLost(f"it sent a file that is none of the run's: {piece.file}")
    path = folder / piece.file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if piece.start_bytes else "wb") as file:
        file.seek(piece.start_bytes)
        file.write(piece.data)
