"""ab, ApacheBench: one thread, a closed loop, HTTP/1.0."""

from collections.abc import Sequence

from webdyno.core.load import Load
from webdyno.core.load_result import Bytes, Failures, KeepAliveResult, LoadResult, Times
from webdyno.core.request import WrittenRequest, may_be_compressed, with_headers
from webdyno.formats import Output
from webdyno.formats.tools.classics import AB
from webdyno.load.instrument import (
    Done,
    Instrument,
    Run,
    header_flags,
    only_closed,
    result_of,
    statuses,
    us,
    whole_seconds,
)
from webdyno.load.interface import LoadOrder

MOST_RPS = 200_000
"""More than ab can do: it takes a number of requests, which ends no slot before its time."""

MOST_CONNECTIONS = 20_000
"""As many as ab takes."""


class ApacheBench(Instrument):
    """`ab -t`: the slot's length is rounded to whole seconds; or `ab -n`, a number of requests."""

    name = "ab"
    package = "apache2-utils"
    version_flag = "-V"
    reader = AB
    always_reported = ("failed",)
    biases = (
        "it speaks HTTP/1.0 from one thread, which is often at its limit before the server",
        "a closed loop waits for slow responses, so latency leaves out what users would wait",
        "latency comes in whole milliseconds",
    )

    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> str | None:
        """Return what of a load ab can't do."""
        if load.connections > MOST_CONNECTIONS:
            return f"opens {MOST_CONNECTIONS} connections at most, not {load.connections}"
        if load.count is not None and load.count < load.connections:
            return f"can't share {load.count} requests out among {load.connections} connections"
        if any(
            may_be_compressed(with_headers(load.headers, request.headers)) for request in requests
        ):
            return "speaks HTTP/1.0, in which not every server compresses"
        return only_closed(load, requests)

    def command(self, order: LoadOrder, cpus: int) -> list[str]:  # noqa: ARG002 (it has a thread)
        """Return ab's command line; -n stands after -t, which sets a number of its own."""
        load, (request,) = order.load, order.requests
        seconds = whole_seconds(order.duration_s)
        requests = order.count or seconds * MOST_RPS
        return [
            *("ab", "-q", "-r", "-s", str(whole_seconds(load.timeout_s))),
            *("-t", str(seconds), "-n", str(requests), "-c", str(load.connections)),
            *header_flags(request),
            *(["-k"] if load.keepalive == "always" else []),
            *(["-l"] if request.expect_on_wire.body_bytes is None else []),
            order.url + request.path,
        ]

    def result(self, order: LoadOrder, run: Run, done: Done, cpus: int) -> LoadResult:  # noqa: ARG002
        """Return what ab printed."""
        (request,) = order.requests
        output, requests = run.output, run.requests
        failures = Failures(
            connect=output.failed_connect or 0,
            reset=(output.failed_receive or 0) + (output.failed_exceptions or 0),
            status=output.non_2xx or 0,
            body=_wrong_bodies(request.expect_on_wire.body_bytes, run),
        )
        # What has the wrong status mostly has the wrong length too: ab counts it twice.
        wrong = max(failures.status or 0, failures.body or 0) + (failures.reset or 0)
        result = result_of(
            order,
            run,
            done,
            done.client(threads=1),
            by_status=statuses(requests, output.non_2xx or 0),
            failures=failures,
            wrong=wrong,
        )
        return result.replace(
            bytes=_bytes(output),
            keepalive=KeepAliveResult(
                requested=order.load.keepalive, server_closed=_closed_connections(order.load, run)
            ),
            connect_time_us=Times(
                min=us(output.connect_min_ms),
                p50=us(output.connect_median_ms),
                max=us(output.connect_max_ms),
            ),
        )


def _wrong_bodies(expected_bytes: int | None, run: Run) -> int | None:
    """Count wrong lengths: ab compares all answers with its first one, which may be wrong too."""
    if expected_bytes is None:
        return None
    if run.output.document_bytes != expected_bytes:
        return run.requests
    return run.output.failed_length or 0


def _bytes(output: Output) -> Bytes:
    if output.total_bytes is None or output.body_bytes is None:
        return Bytes()
    return Bytes(head=output.total_bytes - output.body_bytes, body=output.body_bytes)


def _closed_connections(load: Load, run: Run) -> int | None:
    """Count responses after which the connection was not kept: ab counts the others, with -k."""
    if load.keepalive == "never":
        return 0
    kept = run.output.keepalive_requests
    return None if kept is None else max(run.requests - kept, 0)


PROGRAM = ApacheBench()
