"""Client CPU per request: loadgen, its peers and a bare epoll loop, side by side.

Each round runs every client once, in random order, on one core, against the same server on other
cores: nginx, or one that sends messages back. Ratios are taken within a round. Tables show medians:
of times with [lowest - highest], of ratios with an interval of at least 95% confidence, which takes
6 rounds. A goal is reached or missed when the whole interval says so.
"""

import json
import random
import shlex
import statistics
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table

from rig import machine, programs
from rig.cases import CASES, EARLIER, EARLIER_GOAL, Case, over_tls
from rig.clients import CLIENTS, CannotMakeLoadError
from rig.echo_server import running_echo_server
from rig.machine import Cores
from rig.nginx import Server, running_nginx
from rig.options import seconds
from rig.process import BenchError
from rig.samples import Ratio, Sample, missed_rate, ratio, take_sample
from rig.script import Script, progress

ECHO = "echo_server"
"""What messages over WebSocket are sent to, next to nginx for all else."""

EXAMPLES = """\
  everything in clear, 7 rounds of 2 s (12 minutes)
    .venv/bin/python bench/peers.py
  one case, more rounds, and every sample kept
    .venv/bin/python bench/peers.py --cases small --rounds 11 --json samples.jsonl
  open loop against wrk2, which needs some seconds to get going
    .venv/bin/python bench/peers.py --cases open --duration 8 --peers loadgen,wrk2
  against an earlier build, which lies on the PATH as loadgen-before
    .venv/bin/python bench/peers.py --peers loadgen,loadgen-before --rounds 15 --duration 1
  calls of gRPC against ghz (go install github.com/bojand/ghz/cmd/ghz@latest), 11 rounds of 2 s
    .venv/bin/python bench/peers.py --cases grpc --rounds 11
  messages over WebSocket next to the bare loop
    .venv/bin/python bench/peers.py --cases websocket --rounds 11
  TLS, HTTP/1.1 and HTTP/2
    .venv/bin/python bench/peers.py --tls --cases small,connect,http2
"""


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_choice("--peers", list(CLIENTS))
    made.add_rounds(default=7)
    made.add_argument(
        "--tls", action="store_true", help="ask over TLS what else is asked in clear (in clear)"
    )
    made.add_argument(
        "--duration",
        type=seconds,
        default=2.0,
        help="seconds of each sample (2); wrk, wrk2, ab and h2load take whole seconds, 1 at least",
    )
    made.add_argument("--seed", type=int, default=1, help="of the random order (1)")
    made.add_argument(
        "--json", type=Path, metavar="FILE", help="append every sample to FILE, one JSON line each"
    )
    return made


def commands_for(
    case: Case, names: Sequence[str], paths: Mapping[str, Path], server: Server, duration_s: float
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Give the commands of the clients that can run, and why others can't."""
    commands = {}
    absent = {}
    for name in names:
        client = CLIENTS[name]
        if client.program not in paths:
            absent[name] = f"{client.program} was not found on the PATH"
            continue
        path, url = paths[client.program], server.url(case.path, tls=case.tls, http2=case.http2)
        try:
            commands[name] = client.command(path, case, url, duration_s)
        except CannotMakeLoadError as reason:
            absent[name] = str(reason)
    return commands, absent


def run_case(
    case: Case,
    commands: Mapping[str, Sequence[str]],
    server: Server,
    cores: Cores,
    options: Namespace,
    order: random.Random,
) -> Iterator[Sample]:
    """Run all rounds of a case."""
    for round_number in range(options.rounds):
        for name in order.sample(list(commands), len(commands)):
            machine.wait_until_quiet(cores, options.quiet_wait)
            client, command = CLIENTS[name], commands[name]
            yield take_sample(
                case, client, command, server, cores.client, options.duration, round_number
            )


@contextmanager
def record_file(path: Path | None) -> Iterator[TextIO | None]:
    """Open the file for the samples, if there is one."""
    if path is None:
        yield None
        return
    try:
        with path.open("a") as file:
            yield file
    except OSError as error:
        raise BenchError(f"--json {path}: {error.strerror}") from None


def note(file: TextIO | None, record: Mapping[str, object]) -> None:
    """Write a line and flush it, so that a killed benchmark loses nothing."""
    if file is not None:
        file.write(json.dumps(record) + "\n")
        file.flush()


def compare(options: Namespace, console: Console) -> None:
    """Run all cases and print their tables."""
    served = [ECHO] if any(CASES[name].websocket for name in options.cases) else []
    paths = programs.provide([*(CLIENTS[name].program for name in options.peers), *served])
    cores = machine.split_this_machine()
    order = random.Random(options.seed)
    console.print(machine.describe())
    console.print(
        f"client on core {cores.client}, server on {cores.server}; "
        f"{options.rounds} rounds of {options.duration:g} s; seed {options.seed}"
    )
    if cores.shared:
        console.print("There is only one core: client and server share it, ratios mean little.")
    with record_file(options.json) as file:
        note(file, {"command": shlex.join(sys.argv), "machine": machine.describe()})
        for name in options.cases:
            case = over_tls(CASES[name]) if options.tls else CASES[name]
            with serving(case, cores, paths) as server:
                compare_on(case, server, paths, cores, options, order, file, console)


def serving(case: Case, cores: Cores, paths: Mapping[str, Path]) -> AbstractContextManager[Server]:
    """Start what a case loads."""
    if case.websocket:
        return running_echo_server(paths[ECHO], cores.server)
    return running_nginx(cores.server, tls=case.tls)


def compare_on(
    case: Case,
    server: Server,
    paths: Mapping[str, Path],
    cores: Cores,
    options: Namespace,
    order: random.Random,
    file: TextIO | None,
    console: Console,
) -> None:
    """Run a case and print its table."""
    commands, absent = commands_for(case, options.peers, paths, server, options.duration)
    samples: list[Sample] = []
    try:
        for sample in run_case(case, commands, server, cores, options, order):
            samples.append(sample)
            note(file, sample.as_json())
            progress.print(
                f"{case.name} {sample.round + 1}/{options.rounds} {sample.client}: "
                f"{sample.cpu_us:.2f} µs {sample.problem or ''}"
            )
    finally:
        console.print()
        console.print(comparison(case, samples, absent, options.duration))
        for line in goals(case, samples):
            console.print(line)


def comparison(
    case: Case, samples: Sequence[Sample], absent: Mapping[str, str], duration_s: float
) -> Table:
    """Make the table; `absent` says of each client that was not run why."""
    table = Table(
        title=case.title, title_justify="left", title_style="bold", caption_justify="left"
    )
    table.add_column("client")
    for heading in ("CPU µs/request", f"x {case.reference}", f"x {case.floor or 'floor'}"):
        table.add_column(heading, justify="right")
    for heading in ("req/s", "CPU", "rounds"):
        table.add_column(heading, justify="right")
    table.add_column("remark", overflow="fold")
    for client in dict.fromkeys(each.client for each in sorted(samples, key=lambda s: s.cpu_us)):
        own = [each for each in samples if each.client == client]
        good = [each for each in own if each.problem is None]
        table.add_row(
            client,
            *_cost(good),
            _shown(ratio(samples, client, case.reference)),
            _shown(ratio(samples, client, case.floor) if case.floor else None),
            *_rates(good),
            f"{len(good)}/{len(own)}",
            _remark(case, own, good, duration_s),
        )
    if samples:
        others = [each.others for each in samples]
        table.caption = (
            f"others had the client's core for {statistics.median(others):.0%} of the time, "
            f"at most {max(others):.0%}"
        )
    for client, reason in absent.items():
        table.add_row(client, *["-"] * 6, reason)
    return table


def _cost(good: Sequence[Sample]) -> list[str]:
    if not good:
        return ["-"]
    costs = [each.cpu_us for each in good]
    return [f"{statistics.median(costs):.2f} [{min(costs):.2f} - {max(costs):.2f}]"]


def _rates(good: Sequence[Sample]) -> list[str]:
    if not good:
        return ["-", "-"]
    rate_rps = statistics.median(each.rate_rps for each in good)
    busy = statistics.median(each.busy for each in good)
    return [f"{rate_rps:,.0f}", f"{busy:.0%}"]


def _shown(found: Ratio | None) -> str:
    if found is None:
        return "-"
    return f"{found.median:.2f} [{found.low:.2f} - {found.high:.2f}]"


def _remark(case: Case, own: Sequence[Sample], good: Sequence[Sample], duration_s: float) -> str:
    remarks = list(dict.fromkeys(each.problem for each in own if each.problem))
    achieved_rps = missed_rate(case, good, duration_s)
    if achieved_rps is not None:
        remarks.append(f"missed the rate: {achieved_rps:,.0f}/s")
    return "; ".join(remarks)


def goals(case: Case, samples: Sequence[Sample]) -> list[str]:
    """Say for each goal of loadgen whether it was reached in these samples."""
    lines = []
    wanted = [("loadgen", *goal) for goal in (case.goals | {EARLIER: EARLIER_GOAL}).items()]
    wanted += [
        (f"loadgen-{budget}", case.reference, highest)
        for budget, highest in case.budget_goals.items()
    ]
    for client, reference, highest in wanted:
        found = ratio(samples, client, reference)
        if found is None:
            continue
        lines.append(
            f"goal: {client} at most {highest:.2f} x {reference}: {found.verdict(highest)}; "
            f"median {found.median:.2f}, {found.confidence:.0%} interval "
            f"{found.low:.2f} - {found.high:.2f}, {found.rounds} rounds"
        )
    return lines


if __name__ == "__main__":
    sys.exit(script().run(compare))
