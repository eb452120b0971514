"""Objectives of a capacity: `p99<50ms`, of streams `ttft p99<500ms`, `failures<0.1%`."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from webdyno.core.base import SHARE, TIME
from webdyno.core.load_result import LoadResult

if TYPE_CHECKING:
    from webdyno.core.histogram import Histogram

FAILURES = "failures"
EXAMPLES = "'p99<50ms', 'failures<0.1%' or, of streams, 'ttft p99<500ms' or 'tpot p99<50ms'"
_WRITTEN = re.compile(
    r"(?:(?P<of>ttft|tpot)\s+)?(?P<name>p\d{1,2}(?:\.\d{1,3})?|failures)\s*<\s*(?P<bound>.+)",
    re.ASCII,
)

Of = Literal["latency", "ttft", "tpot"]
"""Time of a whole response, to its first event, or per further event on average."""


@dataclass(frozen=True)
class Objective:
    """What has to hold under a load: a percentile of a time, or the share of failures."""

    text: str
    within_s: float | None
    """What the percentile has to stay below; None where failures are meant."""
    allowed: float
    """Share of the requests that may be beyond it."""
    of: Of = "latency"

    @property
    def name(self) -> str:
        return self.text.partition("<")[0].strip()

    @property
    def whole_within_s(self) -> float | None:
        """The longest time of a whole response; None where that is not what is limited."""
        return self.within_s if self.of == "latency" else None

    def beyond(self, load: LoadResult, latency: "Histogram") -> int:
        """Count the requests due in a slot's window that were beyond it.

        An invalid response is never in time, however fast it came. Those that timed out or were
        never sent are among the latencies, with how long they had waited; of events they lack.
        """
        from webdyno.core.histogram import Histogram  # numpy takes a while to import

        if self.within_s is None:
            return load.failures.total
        if self.of == "latency":
            return _later(latency, self.within_s) + fast_failures(load)
        asked = latency.total + fast_failures(load)
        if load.events is None:
            return asked
        if self.of == "tpot":
            times = Histogram.decode(load.events.per_event_us.histogram or "")
            return _later(times, self.within_s) + max(asked - load.events.responses, 0)
        times = Histogram.decode(load.events.time_to_first_us.histogram or "")
        lacking = max(asked - times.total, load.failures.total)
        return min(_later(times, self.within_s) + lacking, asked)


def _later(times: "Histogram", within_s: float) -> int:
    """Count the times beyond a limit; those of a bucket are spread evenly."""
    above = (times.low + times.width - within_s * 1e6) / times.width
    return round(float((times.counts * above.clip(0, 1)).sum()))


def fast_failures(load: LoadResult) -> int:
    """Count failures that are not among the latencies: all but those that timed out."""
    return load.failures.total - (load.failures.timeout or 0)


def objective(text: str) -> Objective:
    """Read `p99<50ms` or `failures<0.1%`; raise ValueError for anything else."""
    match = _WRITTEN.fullmatch(text.strip())
    if not match or (match["of"] and match["name"] == FAILURES):
        raise ValueError(f"{text!r} is no objective; write {EXAMPLES}")
    name, bound = match["name"], match["bound"]
    if name == FAILURES:
        allowed = SHARE.read(bound)
        if allowed is None or not 0 < allowed < 1:
            raise ValueError(f"{bound!r} is no share between 0% and 100%; write 'failures<0.1%'")
        return Objective(text.strip(), None, allowed)
    quantile, within_s = float(name[1:]) / 100, TIME.read_with_unit(bound)
    if not 0 < quantile < 1:
        raise ValueError(f"{name} is no percentile; write {EXAMPLES}")
    if not within_s:
        raise ValueError(f"{bound!r} is no time with a unit; write 'p99<50ms'")
    of = cast("Of", match["of"] or "latency")
    return Objective(text.strip(), within_s, round(1 - quantile, 9), of)
