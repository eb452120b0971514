"""Client CPU per request: loadgen, its peers and a bare epoll loop, side by side.

Each round runs every client once, in random order, on one core, against the same nginx on other
cores. Ratios are taken within a round. Tables show medians: of times with [lowest - highest], of
ratios with an interval of at least 95% confidence, which takes 6 rounds. A goal is reached or
missed when the whole interval says so.
"""

import json
import random
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console

from rig import machine, programs
from rig.cases import CASES, Case, over_tls
from rig.clients import CLIENTS, CannotMakeLoadError
from rig.comparison import comparison, goals
from rig.machine import Cores
from rig.nginx import Nginx, running_nginx
from rig.options import seconds
from rig.process import BenchError
from rig.samples import Sample, take_sample
from rig.script import Script, progress

EXAMPLES = """\
  everything in clear, 7 rounds of 2 s (12 minutes)
    .venv/bin/python bench/peers.py
  one case, more rounds, and every sample kept
    .venv/bin/python bench/peers.py --cases small --rounds 11 --json samples.jsonl
  open loop against wrk2, which needs some seconds to get going
    .venv/bin/python bench/peers.py --cases open --duration 8 --peers loadgen,wrk2
  against an earlier build, which lies on the PATH as loadgen-before
    .venv/bin/python bench/peers.py --peers loadgen,loadgen-before --rounds 15 --duration 1
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
    case: Case, names: Sequence[str], paths: Mapping[str, Path], nginx: Nginx, duration_s: float
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Give the commands of the clients that can run, and why others can't."""
    commands = {}
    absent = {}
    for name in names:
        client = CLIENTS[name]
        if client.program not in paths:
            absent[name] = f"{client.program} was not found on the PATH"
            continue
        path, url = paths[client.program], nginx.url(case.path, tls=case.tls, http2=case.http2)
        try:
            commands[name] = client.command(path, case, url, duration_s)
        except CannotMakeLoadError as reason:
            absent[name] = str(reason)
    return commands, absent


def run_case(
    case: Case,
    commands: Mapping[str, Sequence[str]],
    nginx: Nginx,
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
                case, client, command, nginx, cores.client, options.duration, round_number
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
    paths = programs.provide(CLIENTS[name].program for name in options.peers)
    cores = machine.split_this_machine()
    order = random.Random(options.seed)
    console.print(machine.describe())
    console.print(
        f"client on core {cores.client}, nginx on {cores.server}; "
        f"{options.rounds} rounds of {options.duration:g} s; seed {options.seed}"
    )
    if cores.shared:
        console.print("There is only one core: client and nginx share it, ratios mean little.")
    with record_file(options.json) as file, running_nginx(cores.server, tls=options.tls) as nginx:
        note(file, {"command": shlex.join(sys.argv), "machine": machine.describe()})
        for name in options.cases:
            case = over_tls(CASES[name]) if options.tls else CASES[name]
            commands, absent = commands_for(case, options.peers, paths, nginx, options.duration)
            samples: list[Sample] = []
            try:
                for sample in run_case(case, commands, nginx, cores, options, order):
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


if __name__ == "__main__":
    sys.exit(script().run(compare))
