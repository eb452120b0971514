"""What databases behind variants do for a request: statements, and their part of the CPU time."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from webdyno.core import format as text
from webdyno.core.metrics import responses
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import mean_interval

DIFFERENT = 0.05
"""Statements per request by which variants differ, and the share of the larger number."""
SLOWER, LEAST_US = 0.25, 10.0
"""Share of the longer time, and microseconds, by which a statement's time differs."""
FEWEST_ROUNDS, CONFIDENCE = 3, 0.99
MOST_NAMED = 2
SHOWN_LETTERS = 90


@dataclass(frozen=True)
class DatabaseWork:
    """What a database of a variant did, per response."""

    variant: str
    role: str
    cpu_us: float
    of_cpu_us: float
    """CPU time of all services of the variant."""
    statements: float
    calls: Mapping[str, float]
    """By statement."""
    time_us: Mapping[str, float]
    """That each took in the database; nothing where it doesn't say."""


def database_work(data: PointData) -> Iterator[DatabaseWork]:
    """Give the work of each database of each variant, where it was counted."""
    for variant in data.experiment.variants:
        counted = [slot for slot in data.of_variant(variant) if slot.readings]
        answered = sum(map(responses, counted))
        readings = [slot.readings for slot in counted if slot.readings]
        roles = dict.fromkeys(role for reading in readings for role in reading.databases)
        for role in roles if answered else ():
            uses = [reading.databases[role] for reading in readings if role in reading.databases]
            services = [reading.services[role] for reading in readings if role in reading.services]
            calls: dict[str, float] = defaultdict(float)
            time_us: dict[str, float] = defaultdict(float)
            for statement in (each for use in uses for each in use.statements):
                calls[statement.text] += statement.calls / answered
                time_us[statement.text] += (statement.time_s or 0.0) * 1e6 / answered
            yield DatabaseWork(
                variant=variant,
                role=role,
                cpu_us=sum(service.cpu_s for service in services) * 1e6 / answered,
                of_cpu_us=sum(slot.servers.cpu_s for slot in counted) * 1e6 / answered,
                statements=sum(use.calls for use in uses) / answered,
                calls=calls,
                time_us=time_us,
            )


def other_statements(data: PointData) -> Iterator[str]:
    """Say how many statements a request takes, which, and how long they take.

    Where that is other than the baseline's; of a variant that is the baseline once more nothing is
    said.
    """
    baseline, *_ = data.experiment.variants
    work = list(database_work(data))
    several = len({role_work.role for role_work in work}) > 1
    for mine in work:
        base = next(
            (
                role_work
                for role_work in work
                if role_work.variant == baseline and role_work.role == mine.role
            ),
            None,
        )
        if base is None or mine is base:
            continue
        more = mine.statements - base.statements
        if abs(more) > max(DIFFERENT, DIFFERENT * max(mine.statements, base.statements)):
            where = f" to {mine.role}" if several else ""
            yield (
                f"{mine.variant}: {_number(mine.statements)} statements{where} per request, "
                f"{baseline}: {_number(base.statements)}{_named(mine, base)}"
            )
        yield from _slower(data, mine, base)


def _named(mine: DatabaseWork, base: DatabaseWork) -> str:
    """Name the statements that make most of the difference, with their numbers per request."""
    larger, smaller = (mine, base) if mine.statements > base.statements else (base, mine)
    more = {
        statement: count - smaller.calls.get(statement, 0.0)
        for statement, count in larger.calls.items()
    }
    most = sorted(more, key=lambda statement: -more[statement])[:MOST_NAMED]
    who = "" if larger is mine else f" of {base.variant}"
    named = ", ".join(
        f"{shortened(statement)} {_number(larger.calls[statement])}×"
        for statement in most
        if more[statement] > DIFFERENT
    )
    return f": {named}{who}" if named else ""


def _slower(data: PointData, mine: DatabaseWork, base: DatabaseWork) -> Iterator[str]:
    """Say which statements take another time, of those that are as many: an index, a lock.

    By more than the rounds scatter: it is elapsed time, which other programs lengthen as well.
    """
    alike = {
        statement
        for statement, calls in mine.calls.items()
        if abs(calls - base.calls.get(statement, 0.0)) <= DIFFERENT * calls
    }
    more_us = {each: mine.time_us[each] - base.time_us[each] for each in alike}
    most = sorted(alike, key=lambda statement: -abs(more_us[statement]))[:MOST_NAMED]
    named = [
        statement
        for statement in most
        if abs(more_us[statement]) > LEAST_US
        and abs(more_us[statement]) > SLOWER * max(mine.time_us[statement], base.time_us[statement])
        and _differs_in_rounds(data, mine, base.variant, statement)
    ]
    if named:
        each = "; ".join(
            f"{shortened(statement)} takes {text.latency(mine.time_us[statement])} per request, "
            f"{base.variant}: {text.latency(base.time_us[statement])}"
            for statement in named
        )
        yield f"{mine.variant}: {each}"


def _differs_in_rounds(data: PointData, mine: DatabaseWork, baseline: str, statement: str) -> bool:
    more_us = [
        _time_us(mine_there, mine.role, statement) - _time_us(base_there, mine.role, statement)
        for each in data.rounds
        if (mine_there := each.of(mine.variant)) and (base_there := each.of(baseline))
    ]
    if len(more_us) < FEWEST_ROUNDS:
        return False
    interval = mean_interval(np.array(more_us), CONFIDENCE)
    return interval.low > 0 or interval.high < 0


def _time_us(slots: Sequence[SlotRecord], role: str, statement: str) -> float:
    """Give the time that a statement took of a request in some slots."""
    databases = [slot.readings.databases if slot.readings else {} for slot in slots]
    uses = [of_slot[role] for of_slot in databases if role in of_slot]
    done = [each for use in uses for each in use.statements if each.text == statement]
    took_s = [each.time_s or 0.0 for each in done]
    return sum(took_s) * 1e6 / max(sum(map(responses, slots)), 1)


def cpu_apart(data: PointData) -> Iterator[str]:
    """Say how much of the CPU time of a request is that of each database."""
    by_role: dict[str, list[str]] = {}
    for work in database_work(data):
        costs = f"{text.latency(work.cpu_us)} of {text.latency(work.of_cpu_us)} ({work.variant})"
        by_role.setdefault(work.role, []).append(costs)
    yield from (f"CPU per request in {role}: {', '.join(value)}" for role, value in by_role.items())


def shortened(statement: str) -> str:
    """Give a statement in one line that isn't too long, its end being what distinguishes it."""
    if len(statement) <= SHOWN_LETTERS:
        return statement
    half = SHOWN_LETTERS // 2
    return f"{statement[:half].rstrip()} … {statement[-half:].lstrip()}"


def _number(count: float) -> str:
    return text.significant(count, 3)
