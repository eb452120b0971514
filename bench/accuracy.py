"""Are the reported percentiles right? Clients against servers whose delays are known.

An open loop at a constant rate meets a server with constant, bimodal or frozen delays; the right
percentiles are computed from the delays alone. loadgen has to be within 2 % + 1 ms of them at
each. Samples in which the server could not keep its delays are not judged, but repeated. Then
loadgen's send lag at 20 000/s against nginx: how late requests leave after they were due.
"""

import json
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import machine, programs
from rig.delay_server import serve_while
from rig.machine import Cores
from rig.nginx import running_nginx
from rig.options import count
from rig.process import BenchError, Finished, run_pinned
from rig.reporters import REPORTERS, Load
from rig.script import Script, progress
from rig.trials import Trial, add_round, trial_of
from rig.truth import (
    BOUNDS,
    TOO_LATE_LIMIT,
    Bimodal,
    Constant,
    Delays,
    Frozen,
    true_percentiles,
)
from rig.truth_table import goal, truth_table

EXAMPLES = """\
  all delays and clients, 3 rounds (8 minutes; at most twice that where samples are repeated)
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


def take_trial(
    name: str, delays: Delays, options: Namespace, paths: Mapping[str, Path], cores: Cores
) -> Trial:
    """Run a client once against a server of its own."""
    reporter = REPORTERS[name]

    def ask(url: str) -> Finished:
        load = Load(delays, url, RATE_RPS, options.duration)
        wait_for_whole_second()
        patience_s = load.duration_s + reporter.longer_s + PATIENCE_S
        return run_pinned(reporter.command(paths[name], load), [cores.client], patience_s)

    machine.wait_until_quiet(cores, options.quiet_wait)
    finished, kept = serve_while(ask, paths["delay_server"], delays, cores.server[-1:])
    trial = trial_of(reporter, finished, kept)
    progress.print(
        f"{delays.title}: {name} {'sound' if trial.sound else 'unsound'}, "
        f"{kept.too_late:,} of {kept.requests:,} answers too late {trial.problem}"
    )
    return trial


def run_delays(
    delays: Delays,
    options: Namespace,
    paths: Mapping[str, Path],
    cores: Cores,
    console: Console,
) -> None:
    """Try the clients on one kind of delays, and print their table."""
    truth = true_percentiles(delays, RATE_RPS, options.duration)
    absent = [name for name in options.clients if name not in paths]
    trials: dict[str, list[Trial]] = {name: [] for name in options.clients if name in paths}
    for _ in range(options.rounds):
        for name, taken in trials.items():
            take = partial(take_trial, name, delays, options, paths, cores)
            add_round(taken, take, most_repeats=options.rounds)
    console.print()
    console.print(truth_table(delays.title, truth, trials, absent))
    if "loadgen" in trials:
        console.print(goal(trials["loadgen"], truth))


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
    console.print(f"right: all percentiles within {BOUNDS} of the truth; ! marks those outside")
    console.print(
        f"unsound: more than {TOO_LATE_LIMIT:.2%} of the server's answers were late by more than "
        "their tolerance;\n  such samples are not judged, but repeated, "
        f"at most {options.rounds} for each client in each table"
    )
    console.print("others: share of the time in which other programs had the client's core")
    for name, delays in DELAYS.items():
        if name in options.delays:
            run_delays(delays, options, paths, cores, console)
    if "loadgen" in options.clients:
        console.print()
        console.print(measure_send_lag(paths["loadgen"], options, cores))


if __name__ == "__main__":
    sys.exit(script().run(check))
