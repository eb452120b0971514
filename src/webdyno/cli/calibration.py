"""`webdyno doctor --calibrate`: what this machine's client can do at most, and how quiet it is."""

import sys
from collections.abc import Sequence

from rich.console import Console

from webdyno.calibrate import save_calibration
from webdyno.calibrate.measuring import measure_calibration
from webdyno.cli.experiment_flags import TestbedFlags
from webdyno.cli.flags import parse_connections, parse_size
from webdyno.model.machine import Calibration, MeasuredCeiling
from webdyno.report.console import plain_console, print_table


def calibrate(
    body: Sequence[str],
    connections: Sequence[str],
    budget_s: float,
    testbed: TestbedFlags,
    *,
    as_json: bool,
) -> None:
    """Measure what this client can do at most against a server that does nothing, and the noise."""
    bodies = [parse_size(text, "--body") for text in body]
    counts = [parse_connections(text, "-c") for text in connections]
    console = plain_console(stderr=True)
    with console.status("calibrating") as status:

        def tell(doing: str) -> None:
            status.update(doing)
            if not console.is_terminal:
                print(doing, file=sys.stderr)  # noqa: T201

        calibration = measure_calibration(bodies, counts, testbed.settings(), budget_s, tell)
    path = save_calibration(calibration)
    if as_json:
        print(calibration.model_dump_json(indent=2))  # noqa: T201
        return
    out = plain_console()
    _show_calibration(out, calibration)
    out.print(f"\nkept in {path}", style="dim", soft_wrap=True)


def _show_calibration(out: Console, calibration: Calibration) -> None:
    out.print("The most that this client reaches, against a server that does nothing\n")
    headings = ("body", "connections", "req/s", "Mbit/s", "client busy", "limit")
    print_table(headings, map(_ceiling, calibration.ceilings), headings[:-1])
    out.print()
    lags = (("timers", calibration.timer_lag), ("requests", calibration.send_lag))
    late = [
        (name, *(f"{lag_us:,.0f}" for lag_us in (lag.p50_us, lag.p99_us, lag.max_us)))
        for name, lag in lags
    ]
    percentiles = ("median", "99%", "most")
    print_table(("late by, µs", *percentiles), late, percentiles)
    out.print()
    lengths = list(calibration.noise[0].visible)
    labels = {"throughput_rps": "requests per second", "server_cpu_us": "server CPU per request"}
    noise = [
        (labels[noise.metric], *(f"{noise.visible[length]:.1%}" for length in lengths))
        for noise in calibration.noise
    ]
    print_table(("differences seen after", *lengths), noise, lengths)
    rounds = calibration.noise[0].rounds
    out.print(
        f"extrapolated from {rounds} rounds of the null server against itself, by t · sd / √n; "
        "real servers may be noisier",
        style="dim",
    )


def _ceiling(found: MeasuredCeiling) -> tuple[str, ...]:
    kept = "" if found.keepalive == "always" else " new each time"
    return (
        f"{found.body_bytes:,} B",
        f"{found.connections}{kept}",
        f"{found.throughput_rps:,.0f}",
        f"{found.body_bytes_per_s * 8 / 1e6:,.0f}",
        f"{found.client_busy:.0%}",
        found.limited_by,
    )
