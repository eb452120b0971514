"""What came of a search for the capacity, for Python."""

from webdyno.core.base import Interval
from webdyno.core.metrics import CAPACITY
from webdyno.interfaces.python.result import Result


class CapacityResult(Result):
    """How much one or two systems can take while objectives hold."""

    @property
    def capacities(self) -> dict[str, Interval]:
        """By variant: requests per second, with the interval.

        Variants of fewer than two rounds lack.
        """
        return {
            variant.variant: variant.interval
            for variant in self.judgement.variants
            if variant.metric == CAPACITY and variant.interval is not None
        }
