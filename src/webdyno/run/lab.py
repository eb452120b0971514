"""What every block at a point works with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from webdyno.bench import Bench
from webdyno.generator import Generator
from webdyno.model.calibration import Calibration
from webdyno.model.experiment import Experiment
from webdyno.model.mistake import Trouble
from webdyno.model.point import Point
from webdyno.model.records import IncidentRecord, Record
from webdyno.run.folder import RunFolder
from webdyno.run.plan import ArmPlan
from webdyno.run.watcher import Watcher
from webdyno.stack import StackDied


@dataclass
class Lab:
    """The experiment, where it runs, what makes its load, and what was measured so far."""

    point: Point
    experiment: Experiment
    """As it is at this point."""
    seed: int
    arms: Sequence[ArmPlan]
    bench: Bench
    new_generator: Callable[[], Generator]
    """Servers and load generator are both started anew in each block."""
    folder: RunFolder
    watcher: Watcher
    calibration: Calibration | None = None
    """What the client can do at most on this bench, where that was measured."""
    records: list[Record] = field(default_factory=list)
    """All of this point that is on disk, in memory as well."""

    def keep(self, record: Record) -> None:
        """Write a record of this point to disk at once, and remember it."""
        record = record.model_copy(update={"point": self.point.number})
        self.folder.append(record)
        self.records.append(record)

    def keep_incident(self, block: int, arm: str, trouble: Trouble) -> None:
        """Put on record that an arm's servers failed."""
        died = trouble if isinstance(trouble, StackDied) else None
        incident = IncidentRecord(
            block=block,
            arm=arm,
            happened_at=datetime.now(UTC),
            what=died.what if died else str(trouble).splitlines()[0],
            log_tail=died.log_tail if died else [],
        )
        self.keep(incident)
