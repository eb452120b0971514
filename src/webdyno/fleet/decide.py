"""Runs of one experiment on several machines: a verdict that holds for more than one of them.

A machine counts once, however many rounds it measured: what another machine would show is known by
how machines differ, and no round of one says that. So each gives the mean of its log ratios, all
weighted alike, and these are a sample of machines of this kind. The mean's interval is Student's,
and that of one more machine's ratio the prediction interval of a normal sample: mean ± t s √(1+1/k)
(Hahn and Meeker, "Statistical Intervals", 1991, section 4.8). Both are exact for normal machines,
without knowing how much of the spread is the rounds' noise. Interference with the machines' runs is
counted against the verdict as it is on one: on average, since it may have been alike on all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, log1p
from typing import NamedTuple

import numpy as np

from webdyno.comparison.asking import question_of
from webdyno.comparison.comparison import ALPHA, DELTA
from webdyno.comparison.judgement import WEIGHT
from webdyno.core import format as text
from webdyno.core.errors import UserError
from webdyno.core.experiment import Level
from webdyno.core.judgement import Comparison, Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.run import RunHead
from webdyno.core.sweep import Difference, PointPlan, plan_points
from webdyno.evidence.differences import mismatches, surroundings
from webdyno.evidence.point_data import RunData
from webdyno.fleet.judgement import AcrossMachines, FleetJudgement, FleetPoint, Replicate, Variety
from webdyno.statistics.interval import (
    LARGEST_LOG,
    TINY,
    Logs,
    intervals_of,
    within_floats,
)
from webdyno.statistics.verdict import by_interval


class JudgedPoint(NamedTuple):
    """What a machine's run says at one point."""

    levels: dict[str, Level]
    compared: list[Comparison]
    """Each variant with the baseline on the deciding metric: all that a fleet asks of a machine."""


class JudgedMachine(NamedTuple):
    """What one machine's run says, without its records: of a thousand machines they are many GB."""

    head: RunHead
    points: list[JudgedPoint]
    """Those that it has measured."""


def judge_machine(run: RunData) -> JudgedMachine:
    """Judge each point that a machine has measured."""
    points = [
        JudgedPoint(point.point.levels, question_of(point.experiment).compare(point))
        for point in run.points
        if any(record.round for record in point.records)
    ]
    return JudgedMachine(run.head, points)


def judge_fleet(machines: Mapping[str, JudgedMachine]) -> FleetJudgement:
    """Judge runs of one experiment together, point by point; machines are named after their runs.

    Raises UserError for fewer than two, and for two of one machine.
    """
    heads = {name: machine.head for name, machine in machines.items()}
    _check(heads)
    first = next(iter(heads.values()))
    unlike = {
        name: differs for name, head in heads.items() if (differs := _mismatches(first, head))
    }
    points, excluded = [], []
    for plan in () if unlike else plan_points(first.experiment):
        levels = plan.point.levels
        comparisons = {
            name: judged.compared
            for name, machine in machines.items()
            for judged in machine.points
            if judged.levels == levels
        }
        if len(comparisons) == len(machines):
            points.append(_judge_point(plan, comparisons))
        elif comparisons:
            excluded.append(levels)
    return FleetJudgement(
        verdict=min((point.verdict for point in points), key=WEIGHT.index, default=Verdict.INVALID),
        machines=list(machines),
        points=points,
        excluded=excluded,
        varieties=_varieties(heads),
        mismatches=unlike,
    )


def _check(heads: Mapping[str, RunHead]) -> None:
    if len(heads) < 2:
        raise UserError("a fleet has two machines or more: give the folder of a run from each")
    known: dict[str, str] = {}
    for name, head in heads.items():
        identity = head.machine.identity
        if identity is not None and (one := known.setdefault(identity, name)) != name:
            raise UserError(
                f"{one} and {name} were measured on the same machine, which counts once: give one "
                "of them"
            )


def _mismatches(first: RunHead, other: RunHead) -> list[Difference]:
    mine, theirs = first.experiment, other.experiment
    variants, others = ", ".join(mine.variants), ", ".join(theirs.variants)
    if variants != others:
        return [Difference(what="variants", before=variants, after=others)]
    return mismatches(mine, theirs, list(mine.variants))


def _judge_point(plan: PointPlan, compared: Mapping[str, Sequence[Comparison]]) -> FleetPoint:
    _, *variants = plan.experiment.variants
    across = [
        _across(
            {name: _of_variant(value, variant) for name, value in compared.items()},
            confidence=1 - ALPHA / len(variants),
        )
        for variant in variants
    ]
    return FleetPoint(
        levels=plan.point.levels,
        verdict=min((replicate.verdict for replicate in across), key=WEIGHT.index),
        headline="; ".join(map(machines_sentence, across)),
        comparisons=across,
    )


def _of_variant(compared: Sequence[Comparison], variant: str) -> Comparison:
    return next(comparison for comparison in compared if comparison.a == variant)


def _across(comparisons: Mapping[str, Comparison], confidence: float) -> AcrossMachines:
    """Compare two variants over machines, of which the invalid ones are named and excluded."""
    valid = [
        comparison
        for comparison in comparisons.values()
        if comparison.verdict is not Verdict.INVALID and comparison.ratio
    ]
    some = next(iter(comparisons.values()))
    logs = [within_floats(np.log(comparison.by_round)) for comparison in valid]
    delta = max((comparison.delta for comparison in valid), default=DELTA)
    mean = another = None
    verdict = Verdict.INCONCLUSIVE if valid else Verdict.INVALID
    why = f"A verdict over machines needs two with a valid run; there is {len(valid) or 'none'}."
    if len(valid) > 1:
        means = np.array([float(ratios.mean()) for ratios in logs])
        mean, another = intervals_of(means, _interference(valid), confidence)
        verdict = by_interval(mean, log1p(delta), METRICS[some.metric].metric.better)
        why = (
            f"By the {text.confidence_level(confidence)} interval of the mean over "
            f"{text.count(len(valid), 'machine')} and ±{text.percent(delta)}."
        )
    return AcrossMachines(
        metric=some.metric,
        a=some.a,
        b=some.b,
        delta=delta,
        replicates=[_replicate(name, value) for name, value in comparisons.items()],
        mean=mean.ratio(confidence) if mean else None,
        another=another.ratio(confidence) if another else None,
        machines_differ=machines_differ(logs),
        verdict=verdict,
        why=why,
    )


def _replicate(machine: str, comparison: Comparison) -> Replicate:
    invalid = comparison.verdict is Verdict.INVALID
    return Replicate(
        machine=machine,
        verdict=comparison.verdict,
        ratio=None if invalid else comparison.decisive,
        rounds=len(comparison.by_round),
        why=comparison.why if invalid else None,
    )


def _interference(valid: Sequence[Comparison]) -> tuple[float, float]:
    """Give by how much interference can have moved the mean down and up (ln)."""
    moved = [
        (
            log(comparison.ratio.low / comparison.worst_case.low),
            log(comparison.worst_case.high / comparison.ratio.high),
        )
        if comparison.ratio and comparison.worst_case and comparison.worst_case.low > 0
        else (LARGEST_LOG if comparison.worst_case else 0.0,) * 2
        for comparison in valid
    ]
    down, up = np.mean(np.clip(moved, 0.0, LARGEST_LOG), axis=0)
    return float(down), float(up)


def machines_differ(logs: Sequence[Logs]) -> bool:
    """Return whether machines' means surely aren't all the same, by the noise of their rounds.

    Welch's test, which asks for no equal noise: "On the comparison of several mean values",
    Biometrika 1951.
    """
    from scipy.special import fdtrc  # takes a while to import

    logs = [ratios for ratios in logs if len(ratios) > 1]
    k = len(logs)
    if k < 2:
        return False
    sizes = np.array([len(ratios) for ratios in logs])
    means = np.array([float(ratios.mean()) for ratios in logs])
    weights = sizes / np.array([max(float(ratios.var(ddof=1)), TINY) for ratios in logs])
    shares = weights / weights.sum()
    between = float((weights * (means - shares @ means) ** 2).sum()) / (k - 1)
    unevenness = float(((1 - shares) ** 2 / (sizes - 1)).sum())
    f = between / (1 + 2 * (k - 2) / (k**2 - 1) * unevenness)
    return bool(fdtrc(k - 1, (k**2 - 1) / (3 * unevenness), f) < ALPHA)


def machines_sentence(across: AcrossMachines) -> str:
    """Say what the machines say together, on how many of them, and what another would."""
    if across.mean is None or across.another is None:
        return f"{across.a} against {across.b}: {text.lower_first(across.why[:-1])}"
    by_verdict = Counter(replicate.verdict for replicate in across.valid)
    counted = ", ".join(f"{verdict} on {n}" for verdict, n in by_verdict.most_common())
    return (
        f"{across.a} has {text.times(across.mean)} the {METRICS[across.metric].short} of "
        f"{across.b} on average ({text.ratio_range(across.mean)}): {across.verdict}; machine by "
        f"machine {counted} of {len(across.valid)}; expected on another such machine: "
        f"{text.between(across.another)}"
    )


def _varieties(heads: Mapping[str, RunHead]) -> list[Variety]:
    """Give what isn't the same on all machines: of them, of the servers, of the load generator."""
    first, *others = heads
    versions: dict[str, dict[str, str]] = {}
    for other in others:
        for difference in surroundings(heads[first], heads[other]):
            if difference.what != "machine.identity":  # which no two machines share
                versions.setdefault(difference.what, dict.fromkeys(heads, difference.before))[
                    other
                ] = difference.after
    return [Variety(what=what, values=values) for what, values in versions.items()]
