"""What a user wants to fail on: `after.server_cpu_us > +5%`, held against a run's intervals."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from webdyno.model.experiment import Experiment
from webdyno.model.format import ratio_range
from webdyno.model.judgement import Comparison, Judgement, Verdict
from webdyno.model.metrics import METRICS

_LIMIT = re.compile(
    r"\s*(?P<variant>.+)\.(?P<metric>\w+)\s*(?P<sign>[<>])\s*(?P<percent>[+-]?\d+(?:\.\d+)?)\s*%\s*"
)

Holds = Literal["yes", "no", "inconclusive"]


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
        """Tell whether it surely holds: over the whole worst-case CI."""
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


def read_limit(text: str, experiment: Experiment) -> Limit:
    """Read `VARIANT.METRIC > +5%` or `VARIANT.METRIC < -5%`.

    Raise ValueError for what it can't be.
    """
    parts = _LIMIT.fullmatch(text)
    if parts is None:
        raise ValueError("should look like 'VARIANT.METRIC > +5%', such as 'b.server_cpu_us > +5%'")
    variant, metric, share = (
        parts["variant"].strip(),
        parts["metric"],
        float(parts["percent"]) / 100,
    )
    baseline, *others = experiment.variants
    if variant == baseline:
        raise ValueError(f"{variant} is the baseline; name a variant that is compared with it")
    if variant not in others:
        raise ValueError(f"there is no variant {variant!r}; there are {', '.join(others)}")
    if metric not in METRICS:
        raise ValueError(f"there is no metric {metric!r}; the metrics are {', '.join(METRICS)}")
    if share <= -1:
        raise ValueError("nothing is less by 100% or more")
    return Limit(text.strip(), variant, metric, parts["sign"] == ">", share)


def limit_answers(limits: Sequence[Limit], judgements: Iterable[Judgement]) -> list[LimitAnswer]:
    return [_answer(limit, judged) for judged in judgements for limit in limits]


def _answer(limit: Limit, judged: Judgement) -> LimitAnswer:
    for comparison in judged.comparisons:
        if (comparison.a, comparison.metric) == (limit.variant, limit.metric):
            interval = comparison.decisive
            ratio = f"{comparison.a} to {comparison.b}: {ratio_range(interval)}" if interval else ""
            return LimitAnswer(limit, limit.holds(comparison), ratio)
    return LimitAnswer(limit, "inconclusive", "")
