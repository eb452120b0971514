"""One ranking of several runs of a task on one machine.

Two stacks that were in one run are compared by that run's ranking. Others are compared by stacks
that both runs have: a's ratio to one of these in its run, divided by b's in its own. All of a run's
ratios to shared stacks hold together (Bonferroni), so the ends of what follows from two of them
hold as well. What is surely faster than something that is surely faster than a third is faster than
that. Drifts from day to day that all stacks have cancel out; a ratio that isn't the same on two
days shows where ends contradict each other, and such pairs stay open. A stack joins runs only if
both had the same version of it, warmed up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, hypot, log, log1p
from statistics import fmean
from typing import NamedTuple

import numpy as np

from webdyno.comparison.bias import evidence_of
from webdyno.comparison.comparison import ALPHA, DELTA
from webdyno.comparison.ranks import Order, Pair
from webdyno.comparison.ratio import ratio_ci
from webdyno.core.base import Interval
from webdyno.core.judgement import Comparison, Ranking, Verdict
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.evidence.log_ratios import pair_of
from webdyno.league.judged import JudgedRun, current_runs, newest_of
from webdyno.statistics.interval import Estimate
from webdyno.statistics.verdict import by_interval

STATEMENTS_OF_A_RUN = 2
"""Its ranks, and its ratios to shared stacks."""
DEDUCED = "Follows from surer pairs: each of them is ahead of the next one."
APART = "They were in no run together, and in none with a stack that joins them."
CONTRADICTED = "Sittings contradict each other about them."
JOINED = "By {shared}, which was in a run with either of them."


@dataclass(frozen=True)
class Joined:
    """A task's ranking."""

    runs: list[JudgedRun]
    """Those that it rests on, the newest first."""
    ranking: Ranking
    of_stack: dict[str, JudgedRun]
    """The run that has a stack's newest result."""
    figures: dict[str, dict[str, Interval]]
    """By metric, by stack, on the scale of the newest run: what ranks are by, and what a request
    costs."""

    @property
    def decide_on(self) -> str:
        return self.runs[0].decide_on

    @property
    def confidence(self) -> float:
        """With which all ranks hold together."""
        statements = STATEMENTS_OF_A_RUN if len(self.runs) > 1 else 1
        return 1 - statements * sum(run.risk for run in self.runs)


def join(newest_first: Sequence[JudgedRun]) -> Joined:
    """Return the ranking of all stacks that some runs have; each by its newest result."""
    runs = current_runs(newest_first)
    of_stack = newest_of(runs)
    reasons = {stack: run.cold | run.ranking.out for stack, run in of_stack.items()}
    out = {stack: of_run[stack] for stack, of_run in reasons.items() if stack in of_run}
    stacks = [stack for stack, run in of_stack.items() if stack in run.ranked and stack not in out]
    decide_on = runs[0].decide_on
    figures = {
        metric: dict(_figures(metric, runs, of_stack))
        for metric in dict.fromkeys((decide_on, CPU_TIME))
    }
    sign = 1 if METRICS[decide_on].metric.better == "higher" else -1
    typical_gains = {
        stack: sign * log(figure.estimate) for stack, figure in figures[decide_on].items()
    }
    order = Order(stacks, _with_deduced(stacks, dict(_compared(runs, stacks, of_stack))))
    pairs = [*order.both_ways()]
    ranks = sorted(
        map(order.rank, stacks), key=lambda rank: (rank.best, -typical_gains[rank.variant])
    )
    ranking = Ranking(ranks=ranks, out=out, pairs=pairs, looks=1)
    return Joined(runs, ranking, of_stack, figures)


def _figures(
    metric: str, runs: Sequence[JudgedRun], of_stack: Mapping[str, JudgedRun]
) -> Iterator[tuple[str, Interval]]:
    scales = _scales(metric, runs)
    for stack, run in of_stack.items():
        value = run.value(stack, metric)
        if value and value.interval:
            yield stack, _Log.of(value.interval).plus(scales[run]).interval


class _Log(NamedTuple):
    """ln of a value, with the half-width of its interval."""

    centre: float
    half_width: float

    @classmethod
    def of(cls, interval: Interval) -> "_Log":
        # The lower end of a wide one may be 0.
        return cls(log(interval.estimate), log(interval.high / interval.estimate))

    @property
    def interval(self) -> Interval:
        low, high = self.centre - self.half_width, self.centre + self.half_width
        return Interval(estimate=exp(self.centre), low=exp(low), high=exp(high))

    def plus(self, other: "_Log") -> "_Log":
        """Add what was measured apart from it."""
        return _Log(self.centre + other.centre, hypot(self.half_width, other.half_width))


def _scales(metric: str, runs: Sequence[JudgedRun]) -> dict[JudgedRun, _Log]:
    """Return what brings each run's values next to the newest run's, by the stacks they share.

    A run that has none in common with the newest one may have some with those that do.
    """
    values = {run: dict(_joining_values(metric, run)) for run in runs}
    scales: dict[JudgedRun, _Log] = {}
    waiting = list(runs)
    while waiting:
        run, apart = next(
            ((each, steps) for each in waiting if (steps := list(_apart(each, values, scales)))),
            (waiting[0], []),
        )
        waiting.remove(run)
        centre = fmean(each.centre for each in apart) if apart else 0.0
        around = hypot(*(each.half_width for each in apart)) / max(len(apart), 1)
        scales[run] = _Log(centre, around)
    return scales


def _joining_values(metric: str, run: JudgedRun) -> Iterator[tuple[str, _Log]]:
    for stack in run.joining:
        if (figure := run.value(stack, metric)) and figure.interval:
            yield stack, _Log.of(figure.interval)


def _apart(
    run: JudgedRun,
    values: Mapping[JudgedRun, Mapping[str, _Log]],
    scales: Mapping[JudgedRun, _Log],
) -> Iterator[_Log]:
    """Yield how far a run is from those that have a scale, by each stack that it shares."""
    for stack, measured in values[run].items():
        for other, scale in scales.items():
            if stack in values[other] and run.is_comparable(stack, other):
                there = values[other][stack].plus(scale)
                yield there.plus(_Log(-measured.centre, measured.half_width))
                break


def _compared(
    runs: Sequence[JudgedRun], stacks: Sequence[str], of_stack: Mapping[str, JudgedRun]
) -> Iterator[tuple[Pair, Comparison]]:
    direct: dict[Pair, Comparison] = {}
    for run in reversed(runs):  # a newer run's word counts
        direct |= {
            (pair.a, pair.b): pair for pair in run.ranking.pairs if _is_current(run, pair, of_stack)
        }
    links = {run: _links(run, runs) for run in runs}
    for a, b in combinations(stacks, 2):
        if (a, b) in direct:
            yield (a, b), direct[a, b]
        else:
            yield (a, b), _by_shared(a, b, of_stack[a], of_stack[b], links)


def _is_current(run: JudgedRun, pair: Comparison, of_stack: Mapping[str, JudgedRun]) -> bool:
    """Whether a run's word on two stacks is about both as they are in their newest runs."""
    newest = [of_stack[pair.a], of_stack[pair.b]]
    return run in newest and all(
        run.is_comparable(stack, its) for stack, its in zip((pair.a, pair.b), newest, strict=True)
    )


def _links(run: JudgedRun, runs: Sequence[JudgedRun]) -> dict[Pair, Estimate]:
    """Return a run's ratios (ln) of its stacks to those that other runs have, which hold together.

    In the worst case of interference.
    """
    elsewhere = {stack for other in runs if other is not run for stack in other.joining}
    wanted = [
        (stack, shared)
        for shared in run.joining
        if shared in elsewhere
        for stack in run.joining
        if stack != shared
    ]
    rule = METRICS[run.decide_on]
    data = run.deciding
    links = {}
    for stack, shared in wanted:
        ci = ratio_ci(
            data,
            pair_of(data, stack, shared, rule),
            shared,
            rule,
            measure=data.measure,
            bound=evidence_of(data, stack, shared, rule).together,
            confidence=1 - run.risk / len(wanted),
        )
        if ci is not None:
            links[stack, shared] = ci.worst_case
    return links


def _by_shared(
    a: str,
    b: str,
    of_a: JudgedRun,
    of_b: JudgedRun,
    links: Mapping[JudgedRun, Mapping[Pair, Estimate]],
) -> Comparison:
    """Compare two stacks of different runs by those that both runs have."""
    mine, theirs = links[of_a], links[of_b]
    shared = [
        other
        for other in of_a.joining
        if (a, other) in mine and (b, other) in theirs and of_a.is_comparable(other, of_b)
    ]
    metric = of_a.decide_on
    if not shared:
        return _comparison(metric, a, b, None, Verdict.INCONCLUSIVE, APART)
    ends = [(mine[a, other], theirs[b, other]) for other in shared]
    low = max(first.low - second.high for first, second in ends)
    high = min(first.high - second.low for first, second in ends)
    if low > high:
        return _comparison(metric, a, b, None, Verdict.INCONCLUSIVE, CONTRADICTED)
    centre = fmean(first.centre - second.centre for first, second in ends)
    ratio = Estimate(low, min(max(centre, low), high), high, "t")
    verdict = by_interval(ratio, log1p(DELTA), METRICS[metric].metric.better)
    limits = {a: of_a.limit_of(a), b: of_b.limit_of(b)}
    joined = _comparison(metric, a, b, ratio, verdict, JOINED.format(shared=" and ".join(shared)))
    return joined.replace(limited_by={stack: limit for stack, limit in limits.items() if limit})


def _comparison(
    metric: str, a: str, b: str, ratio: Estimate | None, verdict: Verdict, why: str
) -> Comparison:
    because = {
        Verdict.INCONCLUSIVE: "wide-interval" if ratio else "few-rounds",
        Verdict.EQUIVALENT: "within-threshold",
    }
    return Comparison(
        metric=metric,
        a=a,
        b=b,
        ratio=ratio.ratio(1 - ALPHA) if ratio else None,
        by_round=[],
        sign_flip_p=None,
        delta=DELTA,
        verdict=verdict,
        because=because.get(verdict, "beyond-threshold"),  # type: ignore[arg-type]
        why=why,
    )


def _with_deduced(
    stacks: Sequence[str], known: Mapping[Pair, Comparison]
) -> dict[Pair, Comparison]:
    """Return comparisons with what follows from them: who is ahead of whom is ahead of a third."""
    place = {stack: number for number, stack in enumerate(stacks)}
    ahead = np.zeros((len(stacks), len(stacks)), dtype=bool)
    for (a, b), comparison in known.items():
        ahead[place[a], place[b]] = comparison.verdict is Verdict.FASTER
        ahead[place[b], place[a]] = comparison.verdict is Verdict.SLOWER
    reached = ahead
    while (further := reached | (reached @ reached)).sum() > reached.sum():
        reached = further
    return {
        (a, b): _deduced(
            comparison,
            is_ahead=bool(reached[place[a], place[b]]),
            is_behind=bool(reached[place[b], place[a]]),
        )
        for (a, b), comparison in known.items()
    }


def _deduced(comparison: Comparison, *, is_ahead: bool, is_behind: bool) -> Comparison:
    if is_ahead and is_behind:
        return comparison.replace(verdict=Verdict.INCONCLUSIVE, why=CONTRADICTED)
    if comparison.why == CONTRADICTED:
        return comparison
    if comparison.verdict is not Verdict.INCONCLUSIVE or not (is_ahead or is_behind):
        return comparison
    verdict = Verdict.FASTER if is_ahead else Verdict.SLOWER
    return comparison.replace(verdict=verdict, because="beyond-threshold", why=DEDUCED)
