"""What came before the blocks and between them: each arm alone, a cold start, remedies, time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from webdyno.judge.point_data import PointData
from webdyno.model import format as text
from webdyno.model.records import PilotRecord, RemedyRecord


@dataclass(frozen=True)
class PilotView:
    """What the pilot of one arm found."""

    arm: str
    cells: dict[str, str]
    """By heading."""
    why: str


Tell = Callable[[PilotRecord], float | None]
COLD: tuple[tuple[str, Tell], ...] = (
    ("first right answer", lambda it: it.cold.first_answer_s),
    ("90 % of its rate", lambda it: it.cold.full_rate_s),
    ("CPU until then", lambda it: it.cold.cpu_s),
)
SETTINGS: tuple[tuple[str, Tell], ...] = (
    ("warm-up", lambda it: it.found.warmup_s),
    ("lead-in", lambda it: it.found.lead_in_s),
    ("window", lambda it: it.found.window_s),
    ("cycle", lambda it: it.found.period_s),
)
TOLD = (*COLD, *SETTINGS)


def pilot_records(data: PointData) -> list[PilotRecord]:
    """Give the last pilot of each arm, those that held."""
    return list({it.arm: it for it in data.records if isinstance(it, PilotRecord)}.values())


def pilot_views(data: PointData) -> list[PilotView]:
    """Put what the pilots found into words, arm by arm."""
    return [
        PilotView(
            arm=pilot.arm,
            cells={what: _seconds(tell(pilot)) for what, tell in TOLD},
            why=pilot.found.why + ("" if pilot.found.steady else "; it was not surely steady then"),
        )
        for pilot in pilot_records(data)
    ]


def _seconds(seconds: float | None) -> str:
    """Two digits: a pilot is short."""
    return text.MISSING if seconds is None else text.duration(float(f"{seconds:.2g}"))


def remedies_taken(data: PointData) -> Iterator[str]:
    """Tell what was mended while the run went on, in its order."""
    for record in data.records:
        if isinstance(record, RemedyRecord):
            after = f"after block {record.block}" if record.block else "before the first block"
            anew = "; what was measured before doesn't count" if record.anew else ""
            yield f"{record.rule}, {after}: {record.what.rstrip('.')}{anew}"
