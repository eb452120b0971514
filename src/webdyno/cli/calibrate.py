"""`webdyno calibrate`: what this machine's client can do at most, and how quiet the machine is."""

import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from webdyno.cli.console import plain_console
from webdyno.cli.experiment_flags import THIS_BENCH, BenchFlags
from webdyno.cli.flags import USUAL_TIME, BudgetFlag, Json
from webdyno.cli.quantities import parse_connections, parse_size
from webdyno.model.machine import Calibration

BODIES = ("100B", "10KB", "100KB", "1MB")
CONNECTIONS = ("64",)
SMALLEST = 100
"""Bytes of the answers that new connections are measured with."""
USUAL_BUDGET_S = 60.0


def calibrate(
    *,
    body: Annotated[
        Sequence[str], Parameter(help="Length of answers, such as 10KB; may be given again.")
    ] = BODIES,
    connections: Annotated[
        Sequence[str], Parameter(help="Connections; may be given again.")
    ] = CONNECTIONS,
    budget: BudgetFlag = USUAL_TIME,
    bench: BenchFlags = THIS_BENCH,
    json: Json = False,
) -> None:
    """Measure what this client can do at most against a server that does nothing, and the noise.

    Later runs on this machine know from it when it was the client or the link that they measured.
    Takes a minute unless --budget says otherwise, most of it for the noise.

    For example

        webdyno calibrate

        webdyno calibrate --budget 5m --body 100KB --connections 16

        webdyno calibrate --bench netns --link 100mbit
    """
    from webdyno.calibrate import save_calibration
    from webdyno.calibrate.measuring import measure_calibration

    budget_s = budget.seconds or USUAL_BUDGET_S
    bodies = [parse_size(text, "--body") for text in body]
    counts = [parse_connections(text, "--connections") for text in connections]
    console = plain_console(stderr=True)
    with console.status("calibrating") as status:

        def tell(doing: str) -> None:
            status.update(doing)
            if not console.is_terminal:
                print(doing, file=sys.stderr)  # noqa: T201

        calibration = measure_calibration(bodies, counts, bench.settings(), budget_s, tell)
    path = save_calibration(calibration)
    if json:
        print(calibration.model_dump_json(indent=2))  # noqa: T201
        return
    out = plain_console()
    _show(out, calibration)
    out.print(f"\nkept in {path}", style="dim", soft_wrap=True)


def _show(out: Console, calibration: Calibration) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("body", "connections", "requests/s", "Mbit/s", "client busy", "limit"):
        table.add_column(heading, justify="left" if heading == "limit" else "right")
    for ceiling in calibration.ceilings:
        kept = "" if ceiling.keepalive == "always" else " new each time"
        table.add_row(
            f"{ceiling.body_bytes:,} B",
            f"{ceiling.connections}{kept}",
            f"{ceiling.rate_rps:,.0f}",
            f"{ceiling.body_bytes_per_s * 8 / 1e6:,.0f}",
            f"{ceiling.client_busy:.0%}",
            ceiling.limited_by,
        )
    out.print("The most that this client reaches, against a server that does nothing\n")
    out.print(table)
    lags = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("late by, µs", "median", "99 %", "most"):
        lags.add_column(heading, justify="right" if heading != "late by, µs" else "left")
    for name, lag in (("timers", calibration.timer_lag), ("requests", calibration.send_lag)):
        lags.add_row(name, f"{lag.p50_us:,.0f}", f"{lag.p99_us:,.0f}", f"{lag.max_us:,.0f}")
    out.print()
    out.print(lags)
    noise = Table(box=None, pad_edge=False, header_style="bold")
    lengths = list(calibration.noise[0].visible)
    for heading in ("differences seen after", *lengths):
        noise.add_column(heading, justify="right" if heading in lengths else "left")
    labels = {"rate_rps": "requests per second", "server_cpu_us": "server CPU per request"}
    for found in calibration.noise:
        widths = (f"{found.visible[length]:.1%}" for length in lengths)
        noise.add_row(labels[found.metric], *widths)
    out.print()
    out.print(noise)
    blocks = calibration.noise[0].blocks
    out.print(
        f"extrapolated from {blocks} blocks of the null server against itself, by t · sd / √n; "
        "real servers may be noisier",
        style="dim",
    )
