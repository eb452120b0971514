"""What variants cost: at an arrival rate, at rest, and in the databases behind them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from webdyno.core import format as text
from webdyno.core.experiment import Experiment
from webdyno.core.files import MIB
from webdyno.core.findings import THOUSAND_RPS, CostAtRate, CostAtRest, OverRounds
from webdyno.core.judgement import Comparison, ValidityWarning, VariantValue
from webdyno.core.metrics import CPU_TIME, responses
from webdyno.core.records import InstructionsRecord, RestRecord, SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import mean_interval

Look = TypeVar("Look", InstructionsRecord, RestRecord)
US_PER_S = 1e6
KIB = 2**10
FEWEST_HELD = 200
"""Connections whose memory can be known: that of fewer is lost in what a process has at hand."""

DIFFERENT = 0.05
"""Statements per request by which variants differ, and the share of the larger number."""
SLOWER, LEAST_US = 0.25, 10.0
"""Share of the longer time, and microseconds, by which a statement's time differs."""
FEWEST_ROUNDS, CONFIDENCE = 3, 0.99
MOST_NAMED = 2
SHOWN_LETTERS = 90


def cost_rate_rps(experiment: Experiment, variant: str) -> float | None:
    """Return the arrival rate at which an experiment asks for costs, if it does."""
    if experiment.measure.decide_on != CPU_TIME:
        return None
    return experiment.load_of(variant).offered_rps


def costs_at_rate(
    data: PointData, values: Sequence[VariantValue], warnings: Sequence[ValidityWarning]
) -> list[CostAtRate]:
    """Return what each variant costs; what a rule says can't be believed has no cost."""
    counted, costs = _last_looks(data, InstructionsRecord), list[CostAtRate]()
    for value in values:
        variant, rate_rps = value.variant, cost_rate_rps(data.experiment, value.variant)
        if value.metric != CPU_TIME or value.interval is None or not rate_rps:
            continue
        if any(warning.invalidates(CPU_TIME, [variant]) for warning in warnings):
            continue
        per_response = [
            record.instructions / record.responses
            for record in counted
            if record.variant == variant and record.instructions is not None and record.responses
        ]
        cost = CostAtRate(
            variant=variant,
            rate_rps=rate_rps,
            cores_per_1000_rps=value.interval.map(lambda us: us / US_PER_S * THOUSAND_RPS),
            instructions=OverRounds.of(per_response),
            uncounted=next((record.fault for record in counted if record.fault), ""),
        )
        costs.append(cost)
    return costs


def with_costs(comparison: Comparison, known: Mapping[str, CostAtRate]) -> Comparison:
    """Add to a comparison of CPU times what both variants cost, where that is known."""
    pair = [known[name] for name in (comparison.a, comparison.b) if name in known]
    if comparison.metric != CPU_TIME or len(pair) < 2:
        return comparison
    return comparison.replace(costs=pair)


def costs_at_rest(data: PointData) -> list[CostAtRest]:
    """Return what each variant used while nobody asked, in the rounds that came to their end."""
    costs = []
    for variant in data.experiment.variants:
        looks = [look for look in _last_looks(data, RestRecord) if look.variant == variant]
        cpu_share = OverRounds.of([look.cpu_s / look.rested_s for look in looks])
        wake_ups_per_s = OverRounds.of([look.wake_ups / look.rested_s for look in looks])
        if cpu_share is None or wake_ups_per_s is None:
            continue
        held = [look.memory_bytes / MIB for look in looks if look.memory_bytes is not None]
        per_connection = list[float]()
        for look in looks:
            before, after = look.memory_bytes, look.memory_with_held_bytes
            if before is not None and after is not None and look.held >= FEWEST_HELD:
                per_connection.append(max(after - before, 0) / look.held / KIB)
        cost = CostAtRest(
            variant=variant,
            rounds=len(looks),
            cpu_share=cpu_share,
            wake_ups_per_s=wake_ups_per_s,
            memory_mib=OverRounds.of(held),
            connection_kib=OverRounds.of(per_connection),
        )
        costs.append(cost)
    return costs


def _last_looks(data: PointData, kind: type[Look]) -> list[Look]:
    """Return the records of a kind in the rounds that came to their end, the last of each."""
    finished = {this_round.record.round for this_round in data.rounds}
    looks = {
        (record.variant, record.round): record
        for record in data.records
        if isinstance(record, kind) and record.round in finished
    }
    return list(looks.values())


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
    """Return the work of each database of each variant, where it was counted."""
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
    """Describe statements of a request whose number or time isn't that of the baseline."""
    baseline, *_ = data.experiment.variants
    work = list(database_work(data))
    of_baseline = {each.role: each for each in work if each.variant == baseline}
    several = len({each.role for each in work}) > 1
    for mine in work:
        base = of_baseline.get(mine.role)
        if base is None or mine is base:
            continue
        more = mine.statements - base.statements
        if abs(more) > max(DIFFERENT, DIFFERENT * max(mine.statements, base.statements)):
            where = f" to {mine.role}" if several else ""
            yield (
                f"{mine.variant}: {_number(mine.statements)} statements{where} per request, "
                f"{baseline}: {_number(base.statements)}{_statements_behind(mine, base)}"
            )
        yield from _slower(data, mine, base)


def _statements_behind(mine: DatabaseWork, base: DatabaseWork) -> str:
    """Name the statements that make most of the difference, with their numbers per request."""
    larger, smaller = (mine, base) if mine.statements > base.statements else (base, mine)
    more = {
        statement: count - smaller.calls.get(statement, 0.0)
        for statement, count in larger.calls.items()
    }
    most = sorted(more, key=lambda statement: -more[statement])[:MOST_NAMED]
    who = "" if larger is mine else f" of {base.variant}"
    named = ", ".join(
        f"{shorten(statement)} {_number(larger.calls[statement])}×"
        for statement in most
        if more[statement] > DIFFERENT
    )
    return f": {named}{who}" if named else ""


def _slower(data: PointData, mine: DatabaseWork, base: DatabaseWork) -> Iterator[str]:
    """Describe statements that take another time, by more than rounds scatter: an index, a lock."""
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
            f"{shorten(statement)} takes {text.latency(mine.time_us[statement])} per request, "
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
    databases = [slot.readings.databases if slot.readings else {} for slot in slots]
    uses = [of_slot[role] for of_slot in databases if role in of_slot]
    done = [each for use in uses for each in use.statements if each.text == statement]
    took_s = [each.time_s or 0.0 for each in done]
    return sum(took_s) * 1e6 / max(sum(map(responses, slots)), 1)


def cpu_apart(data: PointData) -> Iterator[str]:
    """Describe how much of the CPU time of a request is that of each database."""
    by_role: dict[str, list[str]] = {}
    for work in database_work(data):
        costs = f"{text.latency(work.cpu_us)} of {text.latency(work.of_cpu_us)} ({work.variant})"
        by_role.setdefault(work.role, []).append(costs)
    yield from (f"CPU per request in {role}: {', '.join(value)}" for role, value in by_role.items())


def shorten(statement: str) -> str:
    """Return a statement in one line that isn't too long, its end being what distinguishes it."""
    if len(statement) <= SHOWN_LETTERS:
        return statement
    half = SHOWN_LETTERS // 2
    return f"{statement[:half].rstrip()} … {statement[-half:].lstrip()}"


def _number(count: float) -> str:
    return text.significant(count, 3)
