"""Whether a revision is worse than another one by more than is tolerated: the keys of a gate."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from webdyno.core.base import SHARE, Quantity
from webdyno.core.limits import BASELINE, HEAD
from webdyno.core.metrics import CPU_TIME, METRICS, THROUGHPUT, DecidingMetric
from webdyno.core.question import Asking, QuestionSettings
from webdyno.core.text import OneLine

Tolerance = Annotated[float, Quantity(SHARE, 0.001, 10)]

DEFAULT_TOLERANCES: dict[DecidingMetric, Tolerance] = {
    "server_cpu_us": 0.05,
    "throughput_rps": 0.05,
    "latency_p99_us": 0.25,
}
"""A percentile's rounds scatter about five times as far as CPU per request does."""
TOLERANCES_AT_RATE: dict[DecidingMetric, Tolerance] = {CPU_TIME: DEFAULT_TOLERANCES[CPU_TIME]}
"""At an arrival rate, where throughput is that rate and latency has a guard of its own."""


class GateSettings(QuestionSettings):
    """What makes an experiment of three variants a gate: the baseline twice, and head."""

    key: ClassVar[str] = "gate"
    goes_with_search: ClassVar[bool] = False

    worse_than: Annotated[dict[DecidingMetric, Tolerance], Field(min_length=1)] = DEFAULT_TOLERANCES
    """By metric: by how much head may be worse. In an open loop `server_cpu_us` alone, unless
    given."""
    baseline: OneLine = BASELINE
    """The baseline's name in the answer."""
    head: OneLine = HEAD
    """Head's name in the answer."""
    confirm: bool = False
    """What fails has to fail once more, from fresh builds."""
    commits: OneLine = ""
    """The commits between both."""
    rules_differ: bool = False
    """Whether the baseline's own `webdyno.toml` has other limits or requests."""
    repeat: OneLine = ""
    """What was typed."""
    endpoints: Annotated[int, Field(ge=1, le=1_000)] = 1
    """How many test points share the error rate."""

    @model_validator(mode="after")
    def _some_is_left(self) -> Self:
        for metric, share in self.worse_than.items():
            if METRICS[metric].metric.better == "higher" and share >= 1:
                raise ValueError(f"worse_than.{metric}: nothing is less by 100% or more")
        return self

    @classmethod
    def complete(cls, written: object, experiment: Mapping[str, object]) -> object:
        """Return the limits that suit an open loop as well, where none are given."""
        match experiment.get("load"), written:
            case {"loop": "open"}, {**table} if "worse_than" not in table:
                return {**table, "worse_than": dict(TOLERANCES_AT_RATE)}
        return written

    def check(self, experiment: Asking) -> None:
        """Raise ValueError for other variants than a gate's, and a limit without a meaning."""
        variants = list(experiment.variants.values())
        if len(variants) != 3 or variants[0] != variants[1]:
            raise ValueError(
                "a gate has three variants: the baseline twice, defined alike, and the head"
            )
        if experiment.load.offered_rps is not None and THROUGHPUT in self.worse_than:
            raise ValueError(
                "a gate at an arrival rate has no limit on throughput, which is that rate; limit "
                "CPU per request (cpu) or latency (p50, p99)"
            )

    @property
    def limited_metrics(self) -> set[str]:
        return {*self.worse_than}

    def at_one_of(self, points: int) -> Self:
        """Return it as it is at one of some points, which share the error rate."""
        return self.replace(endpoints=points)
