"""Which machines of a fleet are shown: each of a few; of many those at both ends, and their sum."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.judgement import Verdict
from webdyno.model.several_runs import Replicate

APART = 20
"""Of so many machines each is shown."""
AT_EACH_END = 5
NAMED = 4
"""So many of the machines that have something in common are named, unless there is one more."""
VALUES = 8
"""So many values are told of what isn't the same on all of them: those that most of them have."""


@dataclass(frozen=True)
class Shown:
    """One machine, or what is said of many."""

    label: str
    ratio: Interval | None
    verdict: Verdict | None = None
    """None of what has none of its own."""
    reach: tuple[float, float] | None = None
    """Of many machines: the lowest and the highest ratio."""


def shown_machines(replicates: Sequence[Replicate]) -> list[Shown]:
    """Give what is shown of a fleet, by ratio where there are too many to show each."""
    if len(replicates) <= APART:
        return [_apart(it) for it in replicates]
    told = sorted(
        (it for it in replicates if it.ratio), key=lambda it: it.ratio.estimate if it.ratio else 0.0
    )
    shown = [_apart(it) for it in told]
    if len(told) > APART:
        shown = [*shown[:AT_EACH_END], _half_of(shown), *shown[-AT_EACH_END:]]
    without = [it for it in replicates if not it.ratio]
    verdicts = {it.verdict for it in without}
    if without:
        alike = verdicts.pop() if len(verdicts) == 1 else None
        shown.append(Shown(named([it.machine for it in without]), None, alike))
    return shown


def named(machines: Sequence[str]) -> str:
    """Name machines that have something in common: `a, b, c, d and 995 more`."""
    if len(machines) <= NAMED + 1:
        return ", ".join(machines)
    return f"{', '.join(machines[:NAMED])} and {text.number(len(machines) - NAMED)} more"


def shared_values(by_machine: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give each value and the machines that share it, the most frequent first."""
    counted = Counter(by_machine.values())
    frequent = counted.most_common(VALUES)
    told = [
        (value, named([machine for machine, its in by_machine.items() if its == value]))
        for value, _ in frequent
    ]
    if len(counted) > VALUES:
        rest = counted.total() - sum(n for _, n in frequent)
        others = text.count(len(counted) - VALUES, "other value")
        told.append((others, text.count(rest, "machine")))
    return told


def _apart(it: Replicate) -> Shown:
    return Shown(it.machine, it.ratio, it.verdict)


def _half_of(shown: Sequence[Shown]) -> Shown:
    """Sum many up: the middle half of their ratios around the median."""
    ratios = [it.ratio.estimate for it in shown if it.ratio]
    low, middle, high = quantiles(ratios, n=4)
    half = Interval(low=low, estimate=middle, high=high, confidence=0.5)
    label = f"half of all {text.number(len(ratios))}"
    return Shown(label, half, reach=(min(ratios), max(ratios)))
