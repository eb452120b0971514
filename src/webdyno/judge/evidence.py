"""What a run tells of how far a comparison can be off."""

from dataclasses import dataclass
from math import exp, isfinite

from webdyno.judge.bias import bounds_of, client_bound, limited_by
from webdyno.judge.bounds import Bound, of_ratio
from webdyno.judge.interval import LARGEST_LOG, Logs, within_floats
from webdyno.judge.point_data import PointData
from webdyno.model.judgement import Bias, LimitedBy
from webdyno.model.metrics import MetricRule


@dataclass(frozen=True)
class Evidence:
    """What the run tells of the bias of an arm and the baseline on a metric."""

    together: Bound
    """Of their log ratio."""
    biases: list[Bias]
    limited_by: dict[str, LimitedBy]

    @property
    def biased(self) -> bool:
        """Whether anything counts against the verdict."""
        return bool(self.together.up or self.together.down)

    def against(self, d: Logs) -> Logs:
        """Move log ratios towards "no difference" as far as they can have been moved away."""
        return within_floats(d - self.together.up if d.sum() > 0 else d + self.together.down)


def evidence_of(data: PointData, arm: str, baseline: str, rule: MetricRule) -> Evidence:
    """Bound the bias of a comparison from probe readings.

    A client at its limit may have kept an arm from being faster. A link that is full is a part of
    the experiment: over it nothing is faster.
    """
    bounds, limits = {}, {}
    for name, other in ((arm, baseline), (baseline, arm)):
        bounds[name] = bounds_of(data, name, other, rule)
        limit = limited_by(data, name, rule)
        if limit is not None:
            limits[name] = limit
        if limit == "client":
            bounds[name].append(client_bound(data, name, rule))
    return Evidence(
        together=of_ratio(bounds[arm], bounds[baseline]),
        biases=[
            Bias(cause=it.cause, arm=name, too_low=_factor(it.down), too_high=_factor(it.up))
            for name, all_of_them in bounds.items()
            for it in all_of_them
        ],
        limited_by=limits,
    )


def _factor(log_factor: float) -> float | None:
    return exp(log_factor) if isfinite(log_factor) and log_factor < LARGEST_LOG else None
