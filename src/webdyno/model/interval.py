"""An estimate with the range in which it lies."""

from webdyno.model.base import Model

ENDLESS = 1e9
"""A ratio beyond that has no bound."""


class Interval(Model):
    """An estimate with its confidence interval."""

    low: float
    estimate: float
    high: float
    confidence: float = 0.95
