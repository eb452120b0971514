"""Client CPU per request over HTTP/3: loadgen next to bare QUIC, and what HTTP/2 over TLS costs it.

Each round runs every client once, in random order, on one core: loadgen over HTTP/3 in a closed
loop, the floor (the same library without HTTP), and loadgen once more over HTTP/2, where the server
speaks that. The server is `quic_delay_server` without a delay, or one that runs already. Ratios are
taken within a round; tables show medians, of ratios with an interval of at least 95% confidence,
which takes 6 rounds. Debian 12 has no other client that speaks HTTP/3; where an `oha` that was
built with `--features http3` lies on the PATH, it is asked as well.
"""

import json
import random
import statistics
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import machine, programs
from rig.delay_server import serve_while
from rig.options import seconds
from rig.process import BenchError, Finished, run_pinned
from rig.samples import median_interval
from rig.script import Script, progress
from rig.truth import Constant

EXAMPLES = """\
  bare server, 10 rounds of 2 s (1 minute)
    .venv/bin/python bench/http3.py
  Caddy, which `webdyno up caddy --site static --set protocol=h3` starts, over HTTP/2 as well
    .venv/bin/python bench/http3.py --url https://127.0.0.1:8443/hello.txt
"""
PATIENCE_S = 20.0
CONNECTIONS = 64
Command = Callable[[str, float], list[str]]


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_rounds(default=10)
    made.add_argument("--duration", type=seconds, default=2.0, help="seconds of each sample (2)")
    made.add_argument("--url", help="a server that runs already, instead of the bare one")
    made.add_argument("--seed", type=int, default=1, help="of the random order (1)")
    return made


def clients(paths: dict[str, Path], *, http2: bool) -> dict[str, Command]:
    """Give how each client is asked for a load."""

    def loadgen(flag: str) -> Command:
        return lambda url, duration_s: [
            *(str(paths["loadgen"]), "run", url, flag, "--tls-verify", "off", "--json"),
            *("--connections", str(CONNECTIONS), "--time", f"{duration_s}s"),
        ]

    def floor(url: str, duration_s: float) -> list[str]:
        load = ["--connections", str(CONNECTIONS), "--duration", f"{duration_s}"]
        return [str(paths["quic_floor"]), url, *load]

    def oha(url: str, duration_s: float) -> list[str]:
        as_ours = ["--insecure", "--http-version", "3", "--worker-threads", "1", "--no-tui"]
        load = ["-c", str(CONNECTIONS), "-z", f"{duration_s}s", "--output-format", "json"]
        return [str(paths["oha"]), *as_ours, *load, url]

    all_of_them: dict[str, Command] = {"loadgen": loadgen("--http3"), "floor": floor}
    if "oha" in paths:
        all_of_them["oha"] = oha
    if http2:
        all_of_them["loadgen-http2"] = loadgen("--http2")
    return all_of_them


def cpu_us(name: str, finished: Finished) -> float:
    """Give the CPU time of a request in microseconds."""
    if finished.exit_code not in {0, 3}:
        raise BenchError(f"{name} failed with {finished.reason}")
    said = json.loads(finished.output)
    completed = {
        "floor": lambda: said["completed"],
        "oha": lambda: sum(said["statusCodeDistribution"].values()),
    }.get(name, lambda: said["requests"]["completed"])()
    if not completed:
        raise BenchError(f"{name}: not one request was answered")
    return finished.cpu_s * 1e6 / int(completed)


def measure(options: Namespace, paths: dict[str, Path], url: str) -> dict[str, list[float]]:
    """Run all rounds; give what a request cost each client in each."""
    cores, order = machine.split_this_machine(), random.Random(options.seed)
    commands = clients(paths, http2=options.url is not None)
    costs: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(options.rounds):
        for name in order.sample(list(commands), len(commands)):
            machine.wait_until_quiet(cores, options.quiet_wait)
            command = commands[name](url, options.duration)
            finished = run_pinned(command, [cores.client], options.duration + PATIENCE_S)
            costs[name].append(cpu_us(name, finished))
        progress.print(f"round {number + 1} of {options.rounds}")
    return costs


def shown(costs: dict[str, list[float]]) -> Table:
    """Make the table."""
    table = Table(title="CPU per request over HTTP/3", title_justify="left")
    table.add_column("client")
    for heading in ("µs", "lowest - highest", "loadgen / it"):
        table.add_column(heading, justify="right")
    for name, each in costs.items():
        pairs = zip(costs["loadgen"], each, strict=True)
        ratios = [own / other for own, other in pairs]
        low, high, _ = median_interval(ratios)
        against = f"{statistics.median(ratios):.2f} [{low:.2f} - {high:.2f}]"
        table.add_row(
            name,
            f"{statistics.median(each):.2f}",
            f"{min(each):.2f} - {max(each):.2f}",
            "-" if name == "loadgen" else against,
        )
    return table


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, and print it."""
    paths = programs.provide(["loadgen", "quic_floor", "quic_delay_server", "oha"])
    console.print(machine.describe())
    if options.url:
        console.print(shown(measure(options, paths, options.url)))
        return
    server = machine.split_this_machine().server[-1:]
    costs, _ = serve_while(
        lambda url: measure(options, paths, url), paths["quic_delay_server"], Constant(0), server
    )
    console.print(shown(costs))


if __name__ == "__main__":
    sys.exit(script().run(work))
