"""Are the reported percentiles right? Clients against servers whose delays are known.

An open loop at a constant rate meets a server with constant, bimodal or frozen delays; the right
percentiles are computed from the delays alone. loadgen has to be within 2 % + 1 ms of them at
each. Then its send lag at 20 000/s against nginx: how late requests leave after they were due.
"""

import json
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import machine, programs
from rig.delay_server import running_delay_server
from rig.machine import Cores
from rig.nginx import running_nginx
from rig.options import count
from rig.percentiles import Percentiles
from rig.process import BenchError, run_pinned
from rig.reporters import REPORTERS, Load, Reporter
from rig.script import Script, progress
from rig.truth import (
    PERCENTILES,
    Bimodal,
    Constant,
    Delays,
    Frozen,
    all_within,
    true_percentiles,
    within,
)

EXAMPLES = """\
  all delays and clients, 3 rounds (8 minutes)
    .venv/bin/python bench/accuracy.py
  a frozen server, two clients, once
    .venv/bin/python bench/accuracy.py --delays frozen --clients loadgen,wrk --rounds 1
  only the send lag
    .venv/bin/python bench/accuracy.py --delays none --clients loadgen
"""

DELAYS: dict[str, Delays] = {
    "constant": Constant(5),
    "bimodal": Bimodal(fast_ms=2, slow_ms=50, slow_every=40),
    "frozen": Frozen(base_ms=1, freeze_at_ms=500, freeze_ms=200, period_ms=1000),
}
RATE_RPS = 1000
LAG_RATE_RPS = 20_000
LAG_CONNECTIONS = 64
LAG_GOAL_P99_US = 200
LATE_P99_LIMIT_US = 500
"""Half of the tolerance: beyond it the server's delays are not the known ones any more."""
PATIENCE_S = 20.0


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--delays", list(DELAYS), none=True)
    made.add_choice("--clients", list(REPORTERS))
    made.add_rounds(default=3)
    made.add_argument(
        "--duration", type=count, default=10, help="whole seconds that each measures (10)"
    )
    return made


def wait_for_whole_second() -> None:
    """Sleep until a second of the monotonic clock begins.

    The freezes lie in the middle of its seconds, so a run of whole seconds that begins here meets
    each of its freezes in full, and programs may take some time to start.
    """
    time.sleep(1 - time.monotonic() % 1)


@dataclass
class Reported:
    """What a client reported, round by round."""

    rounds: list[Percentiles] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    """Share of each round in which others had the client's core."""
    problem: str = ""

    def typical(self, percent: float) -> float:
        """Give the median over the rounds, of one percentile."""
        return statistics.median_low(each[percent] for each in self.rounds)


def ask(reporter: Reporter, path: Path, load: Load, cpu: int) -> tuple[Percentiles, float]:
    """Run a client once; read its percentiles, and the share of its core that others had."""
    wait_for_whole_second()
    patience_s = load.duration_s + reporter.longer_s + PATIENCE_S
    finished = run_pinned(reporter.command(path, load), [cpu], patience_s)
    if finished.exit_code not in reporter.good_exits:
        raise BenchError(finished.reason)
    return reporter.read(finished.output), finished.others


def run_delays(
    delays: Delays, options: Namespace, paths: Mapping[str, Path], cores: Cores
) -> Table:
    """Hold the clients against one kind of delays."""
    truth = true_percentiles(delays, RATE_RPS, options.duration)
    reported = {name: Reported() for name in options.clients}
    with running_delay_server(paths["delay_server"], delays, cores.server[-1:]) as server:
        load = Load(delays, server.url, RATE_RPS, options.duration)
        for round_number in range(options.rounds):
            for name, found in reported.items():
                if name not in paths:
                    found.problem = "not found on the PATH"
                    continue
                machine.wait_until_quiet(cores, options.quiet_wait)
                try:
                    seen, others = ask(REPORTERS[name], paths[name], load, cores.client)
                    found.rounds.append(seen)
                    found.others.append(others)
                except BenchError as error:
                    found.problem = str(error)
                progress.print(f"{delays.title}: {name} {round_number + 1}/{options.rounds}")
    table = table_of(delays, truth, reported)
    table.caption = lateness(server.late_us or {})
    return table


def lateness(late_us: Mapping[str, int]) -> str:
    """Say how late the server was, and whether its delays were still the known ones."""
    shown = ", ".join(f"{name} {value:,} µs" for name, value in late_us.items())
    line = f"the server wrote its answers late by {shown}"
    if late_us.get("p99", 0) > LATE_P99_LIMIT_US:
        line += ": too late for a computed truth, this table settles nothing"
    return line


def table_of(delays: Delays, truth: Percentiles, reported: Mapping[str, Reported]) -> Table:
    """Show truth and reports; each with its error, those out of bounds with a mark."""
    table = Table(title=f"{delays.title}: milliseconds", title_justify="left", title_style="bold")
    table.add_column("client")
    for percent in PERCENTILES:
        table.add_column(f"p{percent:g}", justify="right", no_wrap=True)
    table.add_column("right")
    table.add_column("others", justify="right")
    table.add_row("truth", *(f"{truth[percent]:.2f}" for percent in PERCENTILES), "", "")
    for name, found in reported.items():
        if not found.rounds:
            table.add_row(name, *["-"] * len(PERCENTILES), found.problem)
            continue
        cells = [_against(found.typical(percent), truth[percent]) for percent in PERCENTILES]
        right = sum(all_within(each, truth) for each in found.rounds)
        table.add_row(
            name,
            *cells,
            f"{right} of {len(found.rounds)} {found.problem}",
            f"{statistics.median(found.others):.0%}",
        )
    return table


def _against(reported_ms: float, true_ms: float) -> str:
    mark = "" if within(reported_ms, true_ms) else " !"
    return f"{reported_ms:.2f} ({reported_ms - true_ms:+.2f}){mark}"


def measure_send_lag(path: Path, options: Namespace, cores: Cores) -> Table:
    """Run loadgen at a high rate against a fast server."""
    table = Table(title=f"loadgen's send lag at {LAG_RATE_RPS:,}/s, µs", title_justify="left")
    for heading in ("round", "p50", "p99", "max", "requests/s", "client CPU", "others"):
        table.add_column(heading, justify="right")
    p99s = []
    with running_nginx(cores.server) as nginx:
        command = [
            *(str(path), "run", nginx.url("/100b"), "--threads", "1", "--json"),
            *("--connections", str(LAG_CONNECTIONS), "--rate", str(LAG_RATE_RPS)),
            *("--duration", f"{options.duration}s"),
        ]
        for round_number in range(options.rounds):
            machine.wait_until_quiet(cores, options.quiet_wait)
            finished = run_pinned(command, [cores.client], options.duration + PATIENCE_S)
            if finished.exit_code not in REPORTERS["loadgen"].good_exits:
                raise BenchError(f"loadgen failed with {finished.reason}")
            result = json.loads(finished.output)
            lag_us = result["send_lag_us"]
            p99s.append(lag_us["p99"])
            table.add_row(
                f"{round_number + 1}",
                *(f"{lag_us[name]:.0f}" for name in ("p50", "p99", "max")),
                f"{result['rate_rps']:,.0f}",
                f"{finished.cpu_s / finished.wall_s:.0%}",
                f"{finished.others:.0%}",
            )
    typical_us = statistics.median_low(p99s)
    word = "reached" if typical_us <= LAG_GOAL_P99_US else "missed"
    table.caption = f"goal: p99 at most {LAG_GOAL_P99_US} µs: {word} with {typical_us:.0f}"
    return table


def check(options: Namespace, console: Console) -> None:
    """Run everything and print the tables."""
    paths = programs.provide(["loadgen", "delay_server", *options.clients])
    cores = machine.split_this_machine()
    console.print(machine.describe())
    console.print(
        f"client on core {cores.client}, server on {cores.server[-1:]}; "
        f"{RATE_RPS}/s, {options.rounds} rounds of {options.duration} s, medians"
    )
    for name in options.clients:
        console.print(f"  {name}: {REPORTERS[name].how}")
    console.print("right: all percentiles within 2 % + 1 ms of the truth; ! marks those outside")
    console.print("others: share of the time in which other programs had the client's core")
    for name, delays in DELAYS.items():
        if name in options.delays:
            console.print()
            console.print(run_delays(delays, options, paths, cores))
    if "loadgen" in options.clients:
        console.print()
        console.print(measure_send_lag(paths["loadgen"], options, cores))


if __name__ == "__main__":
    sys.exit(script().run(check))
