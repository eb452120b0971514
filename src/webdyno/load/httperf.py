"""httperf: one thread that opens connections at a rate, with a number of calls on each."""

from collections.abc import Sequence

from webdyno.core.load import Load
from webdyno.core.load_result import Connections, Failures, LoadResult, Times
from webdyno.core.request import WrittenRequest, header
from webdyno.formats.tools.classics import HTTPERF
from webdyno.load.instrument import Done, Instrument, Run, only_plain, result_of, us
from webdyno.load.interface import LoadOrder


class Httperf(Instrument):
    """`httperf --period`: an open loop of connections; the slot has as many as are due in it."""

    name = "httperf"
    package = "httperf"
    version_flag = "--version"
    reader = HTTPERF
    always_reported = ("connections", "failed", "non_2xx")
    biases = (
        "latency counts from when a request was sent, not from when it was due",
        "its one thread asks the kernel over and over, and is late where it has no CPU to itself",
    )

    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> str | None:
        """Return what of a load httperf can't do."""
        if load.loop == "closed" or load.arrival_unit != "connection":
            return (
                "opens connections at a rate: it needs load.loop = "
                '"open", load.arrival_unit = "connection", load.rate_per_s and load.keepalive = N'
            )
        return only_plain(load, requests)

    def command(self, order: LoadOrder, cpus: int) -> list[str]:  # noqa: ARG002 (it has a thread)
        """Return httperf's command line; a period of type e has exponential lengths (Poisson)."""
        load, (request,) = order.load, order.requests
        headers = request.headers
        # It takes lines with their ends as \n.
        lines = "".join(
            f"{name}: {value}".replace("\\", "\\\\") + "\\n" for name, value in headers.items()
        )
        server, _, port = order.url.removeprefix("http://").partition(":")
        rate = load.rate_per_s or 1.0
        kind = "e" if load.arrivals == "poisson" else "d"
        return [
            *("httperf", "--hog", f"--server={server}"),
            *(f"--port={port or 80}", f"--uri={request.path}"),
            f"--period={kind}{1 / rate:.9f}",
            f"--num-conns={max(1, round(rate * order.duration_s))}",
            f"--num-calls={load.keepalive}",
            f"--timeout={load.timeout_s:g}",
            *(["--no-host-hdr"] if header(headers, "host") else []),
            *([f"--add-header={lines}"] if headers else []),
        ]

    def result(self, order: LoadOrder, run: Run, done: Done, cpus: int) -> LoadResult:  # noqa: ARG002
        """Return what httperf printed. Its times count from when a request was sent, not due."""
        (request,) = order.requests
        output, wrong = run.output, run.output.non_2xx or 0
        other_body = request.expect_on_wire.body_bytes not in {None, output.document_bytes}
        result = result_of(
            order,
            run,
            done,
            done.client(threads=1, busy_waits=True),
            by_status=output.by_status,
            failures=Failures(
                connect=output.failed_connect or 0,
                timeout=output.failed_timeout or 0,
                reset=output.failed_receive or 0,
                status=wrong,
                body=run.requests if other_body and not wrong else 0,
            ),
            wrong=wrong,
        )
        return result.replace(
            connections=Connections(opened=output.connections),
            offered_rps=order.load.offered_rps,
            connect_time_us=Times(p50=us(output.connect_median_ms)),
        )


PROGRAM = Httperf()
