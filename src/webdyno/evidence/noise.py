"""What a noisy machine does to a comparison, and what takes it out again.

**Rounds.** The order of slots is random, so what others do on the machine hits the variants by
chance, and the interval over rounds has that chance in it (Fisher, "The Design of Experiments",
1935). Only interference that one variant had more of than chance explains can have shifted a ratio:
`excess`.

**CPU time.** Servers that are busy all the time lose time to others, not work. So their throughput
at an equal share of the CPUs is requests per second of their own CPU time: `at_equal_cpu` (a
covariate that is known exactly; Deng et al., "CUPED", WSDM 2013). docs/validation/noise.md has what
both are worth.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p
from statistics import fmean

import numpy as np

from webdyno.core.metrics import METRICS, THROUGHPUT, Kind, MetricRule, server_cpu_us
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.statistics.bounds import UNBIASED, Bound
from webdyno.statistics.interval import Logs, estimate, fitted_line, t_half_width

Share = Callable[[SlotRecord], float]
Values = Mapping[int, float]
"""A metric of a variant by round number."""

CHANCE = 0.7
"""Two-sided confidence beyond which a difference in interference is more than chance. Together with
a 95% interval over rounds, what is beyond it leaves at most 4% of ratios outside, however much one
variant had more (tests/evidence/test_noise.py); a higher one leaves up to a third."""
SURE = 0.99
"""The same for what only shows in each round, if at all: others who work for a variant."""
MOST_LOST = 0.999
"""Share of the time beyond which nobody can say what is lost."""
LEAST_TAKEN = 0.02
"""Share of the servers' CPUs that others have to have for throughput to be at equal CPU time."""
MOST_IDLE = 0.05
"""Share of its CPU time that a variant may leave unused for it to count as busy all the time."""
WORTH_IT = 1.5
"""Times as narrow as over rounds alone that intervals have to become by it."""
APART_OF_ONE, APART_OF_TWO = 0.02, 0.2
"""Share of what others take (ln) by which the ratio of one program's variants, or of two programs,
may be another one than on a machine alone."""
OF_REVISIONS = "rev:"
FEWEST = 3
"""Rounds that say how narrow intervals are, or a slope if there are more."""
CONFIDENCE = 0.95
TINY = 1e-9
"""Half-width (ln) of values that are all equal."""


def lost(share: float) -> float:
    """What a share of the time, 0 to 1, takes off throughput at most, in ln."""
    return -log1p(-min(share, MOST_LOST))


def more_by_round(data: PointData, variant: str, other: str, share: Share) -> dict[int, float]:
    """How much more (ln) of an interference a variant had than another one, by round number."""
    return {
        each.record.round: lost(fmean(map(share, mine))) - lost(fmean(map(share, theirs)))
        for each in data.rounds
        if (mine := each.of(variant)) and (theirs := each.of(other))
    }


def beyond_chance(more: Sequence[float], confidence: float = CHANCE) -> float:
    """How much more (ln) one had than chance explains, by rounds; all of it in a single one."""
    if len(more) < 2:
        return max([*more, 0.0])
    return max(estimate(np.array(more), confidence).low, 0.0)


def excess(
    data: PointData, variant: str, other: str, share: Share, confidence: float = CHANCE
) -> float:
    """How much more of an interference a variant had, beyond chance: of what the other left it."""
    more = more_by_round(data, variant, other, share)
    return -expm1(-beyond_chance([*more.values()], confidence))


def steepest(more: Mapping[int, float], d: Mapping[int, float]) -> float:
    """The far end of the 95% interval of a log ratio's slope by interference; inf if not known."""
    both = [n for n in more if n in d]
    axis = np.array([more[n] for n in both])
    if len(both) <= FEWEST or not axis.std():
        return inf
    line = fitted_line(axis, np.array([d[n] for n in both]))
    return max(line.slope + line.half_width(CONFIDENCE), 0.0)


@dataclass(frozen=True)
class EqualCpu:
    """Throughput of variants as it would be with an equal share of the CPUs for each."""

    values: Mapping[str, Values]
    """By variant, req/s; at the share that they had on average."""
    idle: Mapping[str, float]
    """By variant: share of its CPU time, 0 to 1, that it left unused."""

    def too_high(self, variant: str, other: str) -> float:
        """By how much (ln) throughput is too high next to another variant that left less unused."""
        return max(_log_used(self.idle[other]) - _log_used(self.idle[variant]), 0.0)


def _log_used(idle: float) -> float:
    return log1p(-idle)


@compute_once
def by_own_cpu(data: PointData) -> EqualCpu | None:
    """Throughput of busy servers by their own CPU time; None where CPUs were left unused."""
    variants = list(data.experiment.variants)
    slots = {variant: data.of_variant(variant) for variant in variants}
    if not all(mine and all(map(_is_closed_apart, mine)) for mine in slots.values()):
        return None
    idle = {variant: _idle_share(mine) for variant, mine in slots.items()}
    if max(idle.values()) > MOST_IDLE:
        return None
    measured = _throughputs(data)
    per_cpu = {variant: _per_cpu_second(data, variant) for variant in variants}
    if not all(measured.values()) or not all(per_cpu.values()):
        return None
    level = exp(_mean_log(measured) - _mean_log(per_cpu))
    values = {
        variant: {n: value * level for n, value in mine.items()}
        for variant, mine in per_cpu.items()
    }
    return EqualCpu(values, idle)


@compute_once
def at_equal_cpu(data: PointData) -> EqualCpu | None:
    """Throughput at equal CPU time; None where rounds alone do as well, or servers weren't busy.

    Whether it is used hangs on how far rounds scatter and never on which variant is ahead.
    """
    own = by_own_cpu(data)
    if own is None or taken_share(data.slots) < LEAST_TAKEN:
        return None
    baseline, *others = data.experiment.variants
    variants = [baseline, *others]
    widths = [list(_scatter(values, variants)) for values in (_throughputs(data), own.values)]
    if min(map(len, widths)) < len(others):
        return None
    apart = [abs(_log_used(own.idle[other]) - _log_used(own.idle[baseline])) for other in others]
    gains = [
        log(max(was, TINY) / max(becomes + unused / 2, TINY))
        for was, becomes, unused in zip(*widths, apart, strict=True)
    ]
    return own if fmean(gains) >= log(WORTH_IT) else None


def _throughputs(data: PointData) -> dict[str, Values]:
    rule = METRICS[THROUGHPUT]
    return {variant: data.values(variant, rule) for variant in data.experiment.variants}


def judged_values(data: PointData, variant: str, rule: MetricRule) -> Values:
    """A variant's value of a metric by round: throughput at equal CPU time where that helps."""
    equal = at_equal_cpu(data) if rule.name == THROUGHPUT else None
    return equal.values[variant] if equal else data.values(variant, rule)


def apart_alone(data: PointData, variant: str, other: str) -> float:
    """How far (ln) a ratio may be from the one on a machine without others' work.

    Others cost programs more than their time, by cold caches and queues, and different programs
    differently: a share of what they cost in time that held in 11 of 12 runs of two programs
    (docs/validation/noise.md). Of one program, in two revisions or with other settings, it is next
    to nothing.
    """
    slots = [*data.of_variant(variant), *data.of_variant(other)]
    if not slots:
        return 0.0
    stacks = {data.experiment.variants[name].stack for name in (variant, other)}
    same = len(stacks) == 1 or all(stack.startswith(OF_REVISIONS) for stack in stacks)
    return (APART_OF_ONE if same else APART_OF_TWO) * lost(taken_share(slots))


def between_runs(before: PointData, after: PointData, variant: str, kind: Kind) -> Bound:
    """How far others can have moved a variant's change from one run to another one.

    No random order mixes two runs: what others took more of in one of them counts. Memory and sizes
    don't mind.
    """
    shares = (taken_share(run.of_variant(variant)) for run in (before, after))
    was, now = map(lost, shares)
    apart = APART_OF_ONE * max(was, now)
    match kind:
        case "throughput" | "capacity":
            return Bound("others", down=max(now - was, 0.0) + apart, up=max(was - now, 0.0) + apart)
        case "latency":
            return Bound("others", down=max(was - now, 0.0) + apart, up=max(now - was, 0.0) + apart)
        case "work":
            return Bound("others", down=apart, up=apart)
    return UNBIASED


def half_width(data: PointData, rule: MetricRule) -> float:
    """Half-width (ln) of the widest 95% interval of a ratio to the baseline, over rounds alone.

    Infinite where there are too few rounds.
    """
    variants = list(data.experiment.variants)
    values = {variant: judged_values(data, variant, rule) for variant in variants}
    widths = list(_scatter(values, variants))
    return max(widths, default=inf) if len(widths) == len(variants) - 1 else inf


def _is_closed_apart(slot: SlotRecord) -> bool:
    """Whether a slot is of a closed loop, next to a client that has CPUs of its own."""
    readings = slot.readings
    return slot.load.loop == "closed" and readings is not None and not readings.shared_cpus


def taken_share(slots: Sequence[SlotRecord]) -> float:
    """Share of the servers' CPUs, 0 to 1, that others used: neither loaded servers nor client."""
    total_s = taken_s = 0.0
    for slot in slots:
        if slot.readings is None:
            continue
        cpus, client, ours_s = slot.readings.host.servers, slot.load.client, slot.servers.cpu_s
        if slot.readings.shared_cpus:
            ours_s += client.cpu_user_s + client.cpu_sys_s
        total_s += cpus.total_s
        taken_s += max(cpus.total_s - cpus.idle_s - ours_s, 0.0)
    return taken_s / total_s if total_s else 0.0


def _idle_share(slots: Sequence[SlotRecord]) -> float:
    """Share of a variant's CPU time that it left unused, of what others left to it.

    A server with one thread leaves most of two CPUs unused: what it loses to others hangs on which
    of them they take.
    """
    own_s = sum(slot.servers.cpu_s for slot in slots)
    idle_s = sum(slot.readings.host.servers.idle_s for slot in slots if slot.readings)
    return idle_s / (own_s + idle_s) if own_s > 0 else 1.0


def _per_cpu_second(data: PointData, variant: str) -> dict[int, float]:
    """Responses per second of the servers' CPU time in each round that reports it."""
    costs_us = {each.record.round: server_cpu_us(each.of(variant)) for each in data.rounds}
    return {n: 1e6 / cost_us for n, cost_us in costs_us.items() if cost_us}


def _scatter(values: Mapping[str, Values], variants: Sequence[str]) -> Iterator[float]:
    """Half-width (ln) of each variant's ratio to the baseline; nothing for too few rounds."""
    baseline = values[variants[0]]
    for variant in variants[1:]:
        both = [n for n in values[variant] if n in baseline]
        if len(both) < FEWEST:
            return
        d: Logs = np.log([values[variant][n] / baseline[n] for n in both])
        yield t_half_width(len(d), float(d.std(ddof=1)), CONFIDENCE)


def _mean_log(values: Mapping[str, Values]) -> float:
    return fmean(log(value) for mine in values.values() for value in mine.values())
