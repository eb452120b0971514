"""Are the reported percentiles right? Clients against servers whose delays are known.

An open loop at a constant rate meets a server with constant, bimodal or frozen delays; the right
percentiles are computed from the delays alone. loadgen has to be within 2% + 1 ms of them at
each. Samples in which the server could not keep its delays are not judged, but repeated. Each adds
a line to the file of results; the last table is made of all lines. Then loadgen at 20 000/s with
each send-delay budget: how late requests leave after they were due, how late they arrive as the
server sees it, and what one costs the client.
"""

import json
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table

from rig import lab, machine, programs
from rig.delay_server import serve_while
from rig.machine import Cores
from rig.options import count
from rig.percentiles import Percentiles
from rig.process import BenchError, Finished, run_pinned
from rig.reporters import REPORTERS, Load
from rig.script import Script, progress
from rig.trials import Trial, add_round, goal, trial_of, truth_table
from rig.truth import (
    BOUNDS,
    TOO_LATE_LIMIT,
    Bimodal,
    Constant,
    Delays,
    Frozen,
    bound_ms,
    true_percentiles,
)
from webdyno.host.machine import never_idle

EXAMPLES = """\
  all delays and clients, 3 rounds (15 minutes; twice that at most, where samples are repeated)
    .venv/bin/python bench/accuracy.py
  a frozen server, two clients, once
    .venv/bin/python bench/accuracy.py --delays frozen --clients loadgen,wrk --rounds 1
  a frozen server, exact and with budgets, by the thread's and the kernel's clock (at most 7 min)
    .venv/bin/python bench/accuracy.py --delays frozen --no-pacing --repeats 6 --keep-awake \\
      --clients loadgen,loadgen-kernel-times,loadgen-200us,loadgen-1ms
  only the send delay, by budget
    .venv/bin/python bench/accuracy.py --delays none --clients loadgen
  only the table of what is there
    .venv/bin/python bench/accuracy.py --rounds 0
"""

DELAYS: dict[str, Delays] = {
    "constant": Constant(5),
    "bimodal": Bimodal(fast_ms=2, slow_ms=50, slow_every=40),
    "frozen": Frozen(base_ms=1, freeze_at_ms=500, freeze_ms=200, period_ms=1000),
}
RATE_RPS = 1000
DELAY_RATE_RPS = 20_000
DELAY_CONNECTIONS = 64
LAG_GOALS_P99_US = {"0": 200, "50us": None, "200us": 220, "1ms": None}
"""By send-delay budget."""
PATIENCE_S = 20.0
RESULTS = Path("bench/results/accuracy.jsonl")


class Sample(BaseModel):
    """One client against one server: a line of the file of results."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    machine: str
    commit: str
    delays: str
    client: str
    awake: bool
    """Whether CPUs were kept out of deep idle."""
    requests: int
    too_late: int
    """Responses that the server wrote too late."""
    sound: bool
    percentiles_ms: dict[float, float]
    """What the client reported; empty if it failed."""
    truth_ms: dict[float, float]
    right: bool
    """Whether each is within the bounds."""
    others: float
    """Share of the time in which others had the client's core."""
    problem: str = ""


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--delays", list(DELAYS), none=True)
    made.add_choice("--clients", list(REPORTERS))
    made.add_growing(RESULTS, rounds=3)
    made.add_quiet_wait()
    made.add_argument(
        "--repeats",
        type=count,
        default=None,
        help="of unsound samples of each client, at most (as many as rounds)",
    )
    made.add_argument(
        "--no-pacing", action="store_true", help="leave out the send delay at 20 000/s by budget"
    )
    made.add_argument(
        "--keep-awake", action="store_true", help="keep both sides' CPUs out of deep idle"
    )
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
    finished, kept = serve_while(ask, paths[reporter.server], delays, cores.server[-1:])
    trial = trial_of(reporter, finished, kept)
    progress.print(
        f"{delays.title}: {name} {'sound' if trial.sound else 'unsound'}, "
        f"{kept.too_late:,} of {kept.requests:,} responses too late {trial.problem}"
    )
    return trial


def kept_trial(
    name: str,
    delays: Delays,
    truth: Percentiles,
    options: Namespace,
    paths: Mapping[str, Path],
    cores: Cores,
) -> Trial:
    """Run a client once, and add what it reported to the file of results."""
    trial = take_trial(name, delays, options, paths, cores)
    sample = Sample(
        at=datetime.now(UTC),
        machine=machine.describe(),
        commit=lab.commit(),
        delays=delays.title,
        client=name,
        awake=options.keep_awake,
        requests=trial.punctuality.requests,
        too_late=trial.punctuality.too_late,
        sound=trial.sound,
        percentiles_ms=trial.percentiles,
        truth_ms=truth,
        right=trial.right(truth),
        others=trial.others,
        problem=trial.problem,
    )
    lab.append(options.results, sample)
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
            take = partial(kept_trial, name, delays, truth, options, paths, cores)
            add_round(taken, take, most_repeats=options.repeats or options.rounds)
    console.print()
    console.print(truth_table(delays.title, truth, trials, absent))
    for name, taken in trials.items():
        if name.startswith("loadgen"):
            console.print(goal(name, taken, truth))


def measure_pacing(paths: Mapping[str, Path], options: Namespace, cores: Cores) -> Table:
    """Run loadgen at a high rate with each budget; client and server say how late requests are."""
    table = Table(
        title=f"sent at {DELAY_RATE_RPS:,}/s, µs after they were due", title_justify="left"
    )
    headings = ("budget", "delay p50", "p99", "max", "arrival p50", "p99", "max")
    for heading in (*headings, "at a wake-up", "CPU µs each", "others"):
        table.add_column(heading, justify="right")
    p99s: dict[str, list[float]] = {budget: [] for budget in LAG_GOALS_P99_US}
    for _ in range(options.rounds):
        for budget, taken in p99s.items():
            machine.wait_until_quiet(cores, options.quiet_wait)
            delay_us, row = _pacing(budget, paths, options, cores)
            taken.append(delay_us)
            table.add_row(budget, *row)
    words = [
        f"{budget} at most {goal}: {'reached' if found <= goal else 'missed'} with {found:.0f}"
        for budget, goal in LAG_GOALS_P99_US.items()
        if goal and (found := statistics.median_low(p99s[budget]))
    ]
    table.caption = f"goals for the send delay's p99 by budget: {'; '.join(words)}"
    return table


def _pacing(
    budget: str, paths: Mapping[str, Path], options: Namespace, cores: Cores
) -> tuple[float, list[str]]:
    """Give the send delay's 99th percentile, and a row of the table."""

    def ask(url: str) -> Finished:
        command = [
            *(str(paths["loadgen"]), "run", url, "--threads", "1", "--json"),
            *("--connections", str(DELAY_CONNECTIONS), "--rate", str(DELAY_RATE_RPS)),
            *("--time", f"{options.duration}s", "--send-delay-budget", budget),
        ]
        return run_pinned(command, [cores.client], options.duration + PATIENCE_S)

    server = cores.server[-1:]
    finished, kept = serve_while(ask, paths["delay_server"], Constant(0), server, DELAY_RATE_RPS)
    if finished.exit_code not in REPORTERS["loadgen"].good_exits:
        raise BenchError(f"loadgen failed with {finished.reason}")
    result = json.loads(finished.output)
    delay_us, sent = result["send_delay_us"], result["requests"]["sent"]
    seen_us = kept.arrived_late_us or {}
    return delay_us["p99"], [
        *(f"{late[name]:.0f}" for late in (delay_us, seen_us) for name in ("p50", "p99", "max")),
        f"{sent / max(result['client']['wake_ups'], 1):.1f}",
        f"{finished.cpu_s * 1e6 / sent:.1f}",
        f"{finished.others:.0%}",
    ]


def all_samples(samples: Sequence[Sample]) -> Table:
    """Show by delays and client how many samples are sound, how many right, and how far off."""
    table = Table(title="all results", title_justify="left", width=150)
    table.add_column("delays")
    table.add_column("client")
    for heading in ("CPUs awake", "samples", "sound", "right", "largest error, of its bound"):
        table.add_column(heading, justify="right")
    cases = dict.fromkeys((each.delays, each.client, each.awake) for each in samples)
    for delays, client, awake in sorted(cases):
        own = [
            each
            for each in samples
            if (each.delays, each.client, each.awake) == (delays, client, awake)
        ]
        judged = [each for each in own if each.sound]
        right = sum(each.right for each in judged)
        errors = [share_of_bound(each) for each in judged if not each.problem]
        table.add_row(
            *(delays, client, "yes" if awake else "no"),
            *(f"{len(own)}", f"{len(judged)}", f"{right} of {len(judged)}"),
            f"{max(errors):.0%}" if errors else "-",
        )
    return table


def share_of_bound(sample: Sample) -> float:
    """Give a sample's largest error as a share of what it may be."""
    pairs = [(sample.percentiles_ms[percent], true) for percent, true in sample.truth_ms.items()]
    return max(abs(reported - true) / bound_ms(true) for reported, true in pairs)


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    if options.rounds:
        cores = machine.split_this_machine()
        cpus = [cores.client, cores.server[-1]]
        with never_idle(cpus) if options.keep_awake else nullcontext():
            check(options, console, cores)
    console.print()
    console.print(all_samples(lab.read_as(options.results, Sample)))


def check(options: Namespace, console: Console, cores: Cores) -> None:
    """Run everything and print the tables."""
    programs_of = {name: REPORTERS[name].program or name for name in options.clients}
    servers = {REPORTERS[name].server for name in options.clients}
    wanted = {"loadgen", "delay_server", *servers, *programs_of.values()}
    paths = programs.provide(sorted(wanted))
    paths |= {name: paths[of] for name, of in programs_of.items() if of in paths}
    console.print(machine.describe())
    console.print(
        f"client on core {cores.client}, server on {cores.server[-1:]}; "
        f"{RATE_RPS}/s, {options.rounds} rounds of {options.duration} s, medians"
    )
    for name in options.clients:
        console.print(f"  {name}: {REPORTERS[name].how}")
    console.print(f"right: all percentiles within {BOUNDS} of the truth; ! marks those outside")
    console.print(
        f"unsound: more than {TOO_LATE_LIMIT:.2%} of the server's responses were late by more than "
        "their tolerance;\n  such samples are not judged, but repeated, "
        f"at most {options.repeats or options.rounds} for each client in each table"
    )
    console.print("others: share of the time in which other programs had the client's core")
    for name, delays in DELAYS.items():
        if name in options.delays:
            run_delays(delays, options, paths, cores, console)
    if "loadgen" in options.clients and not options.no_pacing:
        console.print()
        console.print(measure_pacing(paths, options, cores))


if __name__ == "__main__":
    sys.exit(script().run(work))
