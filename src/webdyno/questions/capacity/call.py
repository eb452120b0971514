"""A search for the capacity, asked from Python."""

from typing import Unpack

from webdyno.config import CommandLine
from webdyno.interfaces.python.api import CallOptions, Systems, Texts, several
from webdyno.interfaces.python.result import CapacityResult
from webdyno.launch.arrangement import USUAL_OBJECTIVES


def capacity(
    system: str,
    baseline: str | None = None,
    *,
    slo: Texts = USUAL_OBJECTIVES,
    **options: Unpack[Systems],
) -> CapacityResult:
    """Find the highest load that one or two systems carry while objectives hold.

    `slo`: each a percentile of latency, as `p99<50ms`, or `failures<0.1%`.
    """
    given = CallOptions.of(options, Systems)
    more = CommandLine({"capacity": {"slo": several(slo)}}, {("capacity",): "slo"})
    systems = [system] if baseline is None else [baseline, system]
    result = given.measure(given.arrange(systems, more))
    assert isinstance(result, CapacityResult)  # noqa: S101 (its experiment is such a search)
    return result
