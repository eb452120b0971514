"""What people want to fail on: `p99 > +5%`, held against the intervals of a run.

One grammar for all commands, of the baseline's value: `[VARIANT.]METRIC > +PERCENT`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from webdyno.core.experiment import Experiment
from webdyno.core.format import ratio_range
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.metrics import METRICS

SHORT = {
    "cpu": "server_cpu_us",
    "throughput": "throughput_rps",
    "p50": "latency_p50_us",
    "p99": "latency_p99_us",
    "memory": "memory_mib",
}
"""What metrics are called in limits, next to their own names."""
EXAMPLE = "such as 'p99 > +5%' or 'throughput < -5%'"
_LIMIT = re.compile(
    r"\s*(?P<about>[^<>]+?)\s*(?P<sign>[<>])\s*(?P<amount>[+-]\d+(?:\.\d+)?)\s*%\s*"
)

Holds = Literal["yes", "no", "inconclusive"]


class Threshold(NamedTuple):
    """A limit as it is written."""

    text: str
    variant: str
    """Empty where all are meant that are compared with the baseline."""
    metric: str
    above: bool
    share: float
    """Of the baseline's value; negative below it."""


@dataclass(frozen=True)
class Limit:
    """That a variant is above or below the baseline by more than a share on a metric."""

    text: str
    variant: str
    metric: str
    above: bool
    share: float
    """Of the baseline's value; negative below it."""

    def holds(self, comparison: Comparison) -> Holds:
        """Return whether it surely holds: over the whole worst-case CI."""
        interval = comparison.decisive
        if interval is None or comparison.verdict is Verdict.INVALID:
            return "inconclusive"
        bound = 1 + self.share
        surely = interval.low > bound if self.above else interval.high < bound
        surely_not = interval.high <= bound if self.above else interval.low >= bound
        return "yes" if surely else "no" if surely_not else "inconclusive"


@dataclass(frozen=True)
class LimitAnswer:
    """A limit at one point, and what was found there."""

    limit: Limit
    holds: Holds
    ratio: str


def read_threshold(text: str) -> Threshold:
    """Read `p99 > +5%` or `nginx.cpu < -5%`; raise ValueError for what is neither."""
    parts = _LIMIT.fullmatch(text)
    if parts is None:
        raise ValueError(f"should look like METRIC > +PERCENT, {EXAMPLE}")
    about, share = parts["about"], float(parts["amount"]) / 100
    variant, _, name = ("", "", about) if _metric(about) else about.rpartition(".")
    metric = _metric(name.strip())
    if metric is None:
        raise ValueError(f"there is no metric {name!r}; there are {', '.join([*SHORT, *METRICS])}")
    if share <= -1:
        raise ValueError("nothing is less by 100% or more")
    return Threshold(text.strip(), variant.strip(), metric, parts["sign"] == ">", share)


def read_limits(text: str, experiment: Experiment) -> list[Limit]:
    """Read a limit of an experiment's variants; raise ValueError for what it can't be."""
    read = read_threshold(text)
    baseline, *others = experiment.variants
    if read.variant == baseline:
        raise ValueError(f"{read.variant} is the baseline; name a variant that is compared with it")
    if read.variant and read.variant not in others:
        raise ValueError(f"there is no variant {read.variant!r}; there are {', '.join(others)}")
    variants = [read.variant] if read.variant else others
    return [Limit(read.text, variant, read.metric, read.above, read.share) for variant in variants]


def _metric(name: str) -> str | None:
    metric = SHORT.get(name, name)
    return metric if metric in METRICS else None


def limit_answers(limits: Sequence[Limit], judgements: Iterable[Judgement]) -> list[LimitAnswer]:
    return [_answer(limit, judged) for judged in judgements for limit in limits]


def _answer(limit: Limit, judged: Judgement) -> LimitAnswer:
    for comparison in judged.comparisons:
        if (comparison.a, comparison.metric) == (limit.variant, limit.metric):
            interval = comparison.decisive
            ratio = f"{comparison.a} to {comparison.b}: {ratio_range(interval)}" if interval else ""
            return LimitAnswer(limit, limit.holds(comparison), ratio)
    return LimitAnswer(limit, "inconclusive", "")
