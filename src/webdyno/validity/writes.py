"""What a variant's requests write, as far as databases or the requests' methods say."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from webdyno.core.readings import DatabaseUse
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData, derived

GROWS = 0.02
"""Share of what it held by which a database that says no rows grows within a round."""
CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})


class Written(NamedTuple):
    """What shows that a variant's requests leave something behind."""

    rows: float
    """In a slot; 0 where no database says."""
    table: str
    """The one that grew most; empty where none did."""
    held_bytes: tuple[float, float] | None
    """By its databases, as its first slot of a round began and its last; None without any."""
    requests: Sequence[str]
    """Those that change something by their method."""


@derived
def left_behind(data: PointData, variant: str) -> Written | None:
    """Report what a variant's requests leave behind; None for nothing, or in trials of a search."""
    rounds = [slots for a_round in data.rounds if (slots := a_round.of(variant))]
    if any(slot.trial for of_round in rounds for slot in of_round):
        return None
    slots = [slot for of_round in rounds for slot in of_round]
    uses = [use for slot in slots for use in _databases(slot)]
    rows = sum(use.rows_written or 0 for use in uses)
    growths = [growth for of_round in rounds if (growth := _growth(of_round))]
    held = None
    if growths:
        held = fmean(first for first, _ in growths), fmean(last for _, last in growths)
    if rows or (held and held[1] >= (1 + GROWS) * held[0]):
        return Written(rows / len(slots), _most_grown(uses), held, ())
    changing = [
        request.label
        for request in data.experiment.requests
        if request.method not in CHANGES_NOTHING
    ]
    return Written(0.0, "", None, changing) if changing and slots else None


def has_database(data: PointData, variant: str) -> bool:
    """Whether a database behind a variant, which is put back at each start, says what it does."""
    return any(_databases(slot) for slot in data.of_variant(variant))


def _growth(slots: Sequence[SlotRecord]) -> tuple[int, int] | None:
    """Give what a variant's databases held when its first slot of a round began, and its last."""
    held = [sum(use.bytes_before for use in uses) for slot in slots if (uses := _databases(slot))]
    return (held[0], held[-1]) if len(held) > 1 else None


def _databases(slot: SlotRecord) -> list[DatabaseUse]:
    return list(slot.readings.databases.values()) if slot.readings else []


def _most_grown(uses: Sequence[DatabaseUse]) -> str:
    grown: dict[str, int] = {}
    for name, more in (pair for use in uses for pair in use.grown.items()):
        grown[name] = grown.get(name, 0) + more
    return max(grown, key=lambda name: grown[name]) if grown else ""
