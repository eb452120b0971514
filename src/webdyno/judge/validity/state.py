"""Whether what services hold grew from slot to slot, and what a request costs with it."""

from collections.abc import Iterator, Sequence
from math import expm1
from statistics import fmean

from webdyno.judge.point_data import PointData
from webdyno.judge.validity.over_time import TRENDS, pace
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.format import number, percent
from webdyno.model.judgement import ValidityWarning
from webdyno.model.quantities import memory_words
from webdyno.model.readings import DatabaseUse
from webdyno.model.records import SlotRecord

GROWS = 0.02
"""Share of what it held by which a database grows within a round; less may be housekeeping."""
NAME = "state-grows"


def _grows(data: PointData) -> Iterator[ValidityWarning]:
    trend = TRENDS[0]
    for variant in data.experiment.variants:
        growths = [it for a_round in data.rounds if (it := _growth(a_round.of(variant)))]
        change = trend.sure_change(data, variant)
        if not growths or change is None:
            continue
        before, after = (fmean(it) for it in zip(*growths, strict=True))
        if after < (1 + GROWS) * before:
            continue
        direction = "rises" if change.centre > 0 else "falls"
        yield note(
            NAME,
            variant,
            f"what its database holds grows from {memory_words(round(before))} to "
            f"{memory_words(round(after))} from the first to the last slot of a round"
            f"{_written(data.of_variant(variant))}, and {pace(data, variant)} {direction} by "
            f"{percent(abs(expm1(change.centre)))} with it; how far that can have moved its "
            "figures counts against the verdict",
            "Begin each slot alike: --set state.reset=slot puts the database back before each.",
        )


def _growth(slots: Sequence[SlotRecord]) -> tuple[int, int] | None:
    """Give what a variant's databases held when its first slot of a round began, and its last."""
    held = [sum(use.bytes_before for use in uses) for slot in slots if (uses := _databases(slot))]
    return (held[0], held[-1]) if len(held) > 1 else None


def _databases(slot: SlotRecord) -> list[DatabaseUse]:
    return list(slot.readings.databases.values()) if slot.readings else []


def _written(slots: Sequence[SlotRecord]) -> str:
    """Say how many rows a slot writes, and into which table most, where that is known."""
    uses = [database for slot in slots for database in _databases(slot)]
    rows = sum(use.rows_written or 0 for use in uses)
    grown: dict[str, int] = {}
    for name, more in (pair for use in uses for pair in use.grown.items()):
        grown[name] = grown.get(name, 0) + more
    where = f", most of it in {max(grown, key=lambda it: grown[it])}" if grown else ""
    return f" ({number(rows / len(slots))} rows written in a slot{where})" if rows else ""


STATE_GROWS = RunRule(NAME, _grows)
