"""redis-benchmark: one command again and again over kept connections, a closed loop."""

from collections.abc import Sequence

from webdyno.core.load import Load
from webdyno.core.load_result import Failures, LoadResult
from webdyno.core.request import WrittenRequest
from webdyno.formats.tools.classics import REDIS
from webdyno.load.instrument import Done, Instrument, Run, only_closed, result_of
from webdyno.load.interface import GeneratorError, LoadOrder

REQUESTS_PER_S = 100_000
"""It ends after a number of requests, not a time: its own default for each second of a slot,
unless the load says how many."""


class RedisBenchmark(Instrument):
    """`redis-benchmark -t`: the path names one of its tests, such as /incr."""

    name = "redis-benchmark"
    package = "redis-tools"
    version_flag = "--version"
    reader = REDIS
    protocol = "redis"
    biases = (
        "it asks for one command again and again, mostly of the same key",
        "a closed loop waits for slow responses, so latency leaves out what users would wait",
    )

    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> str | None:
        """Return what of a load redis-benchmark can't do."""
        if load.headers:
            return "speaks no HTTP, so it has no headers"
        return only_closed(load, requests)

    def command(self, order: LoadOrder, cpus: int) -> list[str]:
        """Return redis-benchmark's command line; a single thread is what it has by itself."""
        load, (request,) = order.load, order.requests
        server, _, port = order.url.removeprefix("redis://").partition(":")
        threads = _threads(load, cpus)
        requests = order.count or max(1, round(order.duration_s * REQUESTS_PER_S))
        return [
            *("redis-benchmark", "-h", server, "-p", port, "-t", request.path.removeprefix("/")),
            *("-n", str(requests)),
            *("-c", str(load.connections), "-k", "0" if load.keepalive == "never" else "1"),
            *(["--threads", str(threads)] if threads > 1 else []),
        ]

    def result(self, order: LoadOrder, run: Run, done: Done, cpus: int) -> LoadResult:
        """Return what redis-benchmark printed; it ends at the first error, and counts none."""
        if done.exit_code:
            raise GeneratorError(f"redis-benchmark ended with exit code {done.exit_code}")
        client = done.client(_threads(order.load, cpus))
        return result_of(order, run, done, client, by_status={}, failures=Failures())


def _threads(load: Load, cpus: int) -> int:
    return min(cpus, load.connections)


PROGRAM = RedisBenchmark()
