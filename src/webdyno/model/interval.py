"""An estimate with the range in which it lies."""

from collections.abc import Callable
from math import inf

from webdyno.model.base import Model

ENDLESS = 1e9
"""A ratio beyond that has no bound."""


class Interval(Model):
    """An estimate with its confidence interval."""

    low: float
    estimate: float
    high: float
    confidence: float = 0.95

    def mapped(self, by: Callable[[float], float]) -> "Interval":
        """Give that of what follows from this by a function that only rises, or only falls."""
        low, high = sorted((by(self.low), by(self.high)))
        return self.replace(low=low, estimate=by(self.estimate), high=high)

    def inverse(self) -> "Interval":
        """Give that of the ratio the other way round."""
        return Interval(
            low=1 / self.high,
            estimate=1 / self.estimate,
            high=1 / self.low if self.low else inf,
            confidence=self.confidence,
        )
