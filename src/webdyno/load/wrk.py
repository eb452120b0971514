"""wrk: several threads, a closed loop."""

from collections.abc import Sequence

from webdyno.core.load import Load
from webdyno.core.load_result import Failures, LoadResult
from webdyno.core.request import WrittenRequest
from webdyno.formats.tools.wrk import WRK
from webdyno.load.instrument import (
    Done,
    Instrument,
    Run,
    header_flags,
    only_closed,
    result_of,
    statuses,
    whole_seconds,
)
from webdyno.load.interface import LoadOrder


class Wrk(Instrument):
    """`wrk --latency`: the slot's length is rounded to whole seconds."""

    name = "wrk"
    package = "wrk"
    version_flag = "-v"
    reader = WRK
    biases = (
        "a closed loop waits for slow responses, so latency leaves out what users would wait",
        "it looks at no body, and connections that can't be opened count among its connections",
    )

    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> str | None:
        """Return what of a load wrk can't do."""
        if load.count is not None:
            return "ends after a time, not after a number of requests"
        return only_closed(load, requests)

    def command(self, order: LoadOrder, cpus: int) -> list[str]:
        """Return wrk's command line."""
        load, (request,) = order.load, order.requests
        return [
            *("wrk", "--latency", "-t", str(_threads(load.connections, cpus))),
            *("-c", str(load.connections), "-d", f"{whole_seconds(order.duration_s)}s"),
            *("--timeout", f"{whole_seconds(load.timeout_s)}s"),
            *header_flags(request),
            *(["-H", "Connection: close"] if load.keepalive == "never" else []),
            order.url + request.path,
        ]

    def result(self, order: LoadOrder, run: Run, done: Done, cpus: int) -> LoadResult:
        """Return what wrk printed; it looks at no body, and says only what did go wrong."""
        output, wrong = run.output, run.output.non_2xx or 0
        connect, timeout = output.failed_connect or 0, output.failed_timeout or 0
        return result_of(
            order,
            run,
            done,
            done.client(_threads(order.load.connections, cpus)),
            by_status=statuses(run.requests, wrong),
            failures=Failures(
                connect=connect,
                timeout=timeout,
                reset=(output.failed or 0) - connect - timeout,
                status=wrong,
            ),
            wrong=wrong,
        )


def _threads(connections: int, cpus: int) -> int:
    """Return the most threads that share the connections evenly: wrk drops what is left over."""
    return next(n for n in range(min(cpus, connections), 0, -1) if connections % n == 0)


PROGRAM = Wrk()
