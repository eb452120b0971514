"""Runs of one experiment on several machines: a verdict that holds for more than one of them.

A machine counts once, however many rounds it measured: only how machines differ shows what another
one would do. So each gives the mean of its log ratios, all weighted alike: a sample of machines of
this kind. The mean's interval is Student's, and that of one more machine's ratio the prediction
interval of a normal sample: mean ± t s √(1+1/k) (Hahn and Meeker, "Statistical Intervals", 1991,
section 4.8). Both are exact for normal machines, however much of the spread is the rounds' noise.
Interference counts against the verdict as on one machine: on average, as it may be alike on all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, log1p
from typing import NamedTuple

import numpy as np

from webdyno.comparison import question_of
from webdyno.comparison.comparison import ALPHA, DELTA
from webdyno.comparison.judgement import WEIGHT
from webdyno.core import format as text
from webdyno.core.base import Count, Interval, Model
from webdyno.core.errors import UserError
from webdyno.core.experiment import Level
from webdyno.core.judgement import Comparison, Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.run import RunHead
from webdyno.core.sweep import Difference, PointPlan, plan_points
from webdyno.core.text import Prose
from webdyno.evidence.differences import mismatches, surroundings
from webdyno.evidence.point_data import RunData
from webdyno.statistics.interval import LARGEST_LOG, TINY, Logs, intervals_of, within_floats
from webdyno.statistics.verdict import by_interval


class Replicate(Model):
    """What one machine shows of a variant and the baseline."""

    machine: str
    """The names of its runs."""
    verdict: Verdict
    ratio: Interval | None
    """What the verdict rests on, interference counted in the worst case."""
    rounds: Count
    why: Prose | None = None
    """Why its verdict is `invalid`, if it is: it has no part in what is said of all machines."""


class AcrossMachines(Model):
    """Variant `a` against baseline `b` on the deciding metric.

    Machines are an outer random effect.
    """

    metric: str
    a: str
    b: str
    delta: float
    """Ratios within 1/(1 + delta) to 1 + delta count as equivalent."""
    replicates: list[Replicate]
    mean: Interval | None
    """Of the ratio on machines of this kind, on average; None of fewer than two."""
    another: Interval | None
    """In which the ratio lies that one more machine of this kind would show."""
    machines_differ: bool
    """Whether the machines' ratios surely aren't all the same."""
    verdict: Verdict
    """By the mean's interval."""
    why: Prose

    @property
    def valid(self) -> list[Replicate]:
        return [machine for machine in self.replicates if machine.verdict is not Verdict.INVALID]


class Variety(Model):
    """Something that isn't the same on all machines."""

    what: str
    """Dotted name, such as `machine.kernel` or `versions.nginx.nginx`."""
    values: dict[str, str]
    """By machine."""


class FleetPoint(Model):
    """What the machines say at one point of the experiment."""

    levels: dict[str, Level]
    """By factor; empty in an experiment without factors."""
    verdict: Verdict
    """The weightiest of its comparisons."""
    headline: Prose
    comparisons: list[AcrossMachines]


class FleetJudgement(Model):
    """Runs of one experiment on several machines, judged together."""

    verdict: Verdict
    """The weightiest of all points; `invalid` without any."""
    machines: list[str]
    points: list[FleetPoint]
    excluded: list[dict[str, Level]]
    """Points that not all of the machines have."""
    varieties: list[Variety]
    mismatches: dict[str, list[Difference]]
    """By run: in what its experiment differs from the first run's. With any there is no verdict."""


class JudgedPoint(NamedTuple):
    """What a machine's run says at one point."""

    levels: dict[str, Level]
    compared: list[Comparison]
    """Each variant with the baseline on the deciding metric: all that a fleet asks of a machine."""


class JudgedMachine(NamedTuple):
    """What one machine's run says, without its records: a thousand machines have many GB."""

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

    Raise UserError for fewer than two, and for two of one machine.
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
    across = []
    for variant in variants:
        of_machines = {
            name: next(comparison for comparison in comparisons if comparison.a == variant)
            for name, comparisons in compared.items()
        }
        across.append(_across(of_machines, confidence=1 - ALPHA / len(variants)))
    return FleetPoint(
        levels=plan.point.levels,
        verdict=min((replicate.verdict for replicate in across), key=WEIGHT.index),
        headline="; ".join(map(machines_sentence, across)),
        comparisons=across,
    )


def _across(comparisons: Mapping[str, Comparison], confidence: float) -> AcrossMachines:
    """Compare two variants over machines, of which the invalid ones are named and excluded."""
    valid = [
        each for each in comparisons.values() if each.verdict is not Verdict.INVALID and each.ratio
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
        replicates=[
            Replicate(
                machine=name,
                verdict=each.verdict,
                ratio=None if each.verdict is Verdict.INVALID else each.decisive,
                rounds=len(each.by_round),
                why=each.why if each.verdict is Verdict.INVALID else None,
            )
            for name, each in comparisons.items()
        ],
        mean=mean.ratio(confidence) if mean else None,
        another=another.ratio(confidence) if another else None,
        machines_differ=machines_differ(logs),
        verdict=verdict,
        why=why,
    )


def _interference(valid: Sequence[Comparison]) -> tuple[float, float]:
    moved = []
    for comparison in valid:
        ratio, worst_case = comparison.ratio, comparison.worst_case
        if ratio and worst_case and worst_case.low > 0:
            moved.append((log(ratio.low / worst_case.low), log(worst_case.high / ratio.high)))
        else:
            moved.append((LARGEST_LOG if worst_case else 0.0,) * 2)
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
    """Describe what the machines show together, on how many of them, and what another would."""
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
    """Return what of machines, servers and load generator isn't the same on all machines."""
    first, *others = heads
    versions: dict[str, dict[str, str]] = {}
    for other in others:
        for difference in surroundings(heads[first], heads[other]):
            if difference.what != "machine.identity":  # which no two machines share
                alike = dict.fromkeys(heads, difference.before)
                versions.setdefault(difference.what, alike)[other] = difference.after
    return [Variety(what=what, values=values) for what, values in versions.items()]
