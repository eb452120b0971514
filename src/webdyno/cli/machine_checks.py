"""What `webdyno doctor` looks at on this machine, and what it means for results."""

import os
from collections.abc import Iterator, Sequence
from json import dumps
from typing import NamedTuple

from rich.text import Text

from webdyno.definitions import Catalogue
from webdyno.model.errors import OperationError, UserError
from webdyno.model.machine import Machine
from webdyno.report.console import print_table

ENOUGH_FILES = 20_000
"""Open files that suffice for the largest number of connections which people ask about."""
ENOUGH_BACKLOG = 1024
WORTH_IT = 0.7
"""CPUs are better kept awake where that leaves less than this share of a sleep's cost."""


class Check(NamedTuple):
    """One thing that was looked at."""

    what: str
    found: str
    meaning: str
    good: bool = True


def look_at_machine(catalogue: Catalogue, *, as_json: bool) -> None:
    """Look at this machine, and print what is found."""
    from webdyno.host.this_machine import Testbed

    testbed = Testbed()
    machine = testbed.describe()
    checks = [
        *_cpu_checks(machine),
        *_limit_checks(machine),
        _sleep(machine),
        _server_user(testbed.user.name if testbed.user else None),
        _cpu_accounting(),
        _engine(),
        *_package_checks(catalogue),
    ]
    if as_json:
        print(dumps([check._asdict() for check in checks], indent=2))  # noqa: T201
        return
    good, bad = Text("ok", "green"), Text("!", "yellow")
    rows = [
        (good if check.good else bad, check.what, check.found, check.meaning) for check in checks
    ]
    print_table(("", "what", "found", "what that means"), rows)


def _cpu_checks(machine: Machine) -> Iterator[Check]:
    split = machine.split
    cores = f"{len(machine.cpus)} CPUs, {machine.cpu_model}"
    if split.shared:
        yield Check("processor", cores, "servers and client share it: indicative only", good=False)
    else:
        yield Check(
            "processor",
            cores,
            f"servers on CPU {_listed(split.servers)}, client on {_listed(split.client)}",
        )
    if machine.virtualisation:
        yield Check(
            "machine",
            machine.virtualisation,
            "neighbors can interfere: expect wider intervals, more rounds",
            good=False,
        )
    if machine.governor not in {None, "performance"}:
        yield Check(
            "frequency",
            f"governor {machine.governor}",
            "clock rates follow the load: set the governor to performance for steadier results",
            good=False,
        )


def _limit_checks(machine: Machine) -> Iterator[Check]:
    files = machine.open_files_limit
    yield Check(
        "open files",
        f"{files} per process",
        "connections are limited only by this"
        if files >= ENOUGH_FILES
        else f"about {max(files - 100, 0)} connections at most; raise it with ulimit -n",
        good=files >= ENOUGH_FILES,
    )
    backlog = machine.listen_backlog_limit
    if backlog is not None:
        yield Check(
            "listen queue",
            f"net.core.somaxconn {backlog}",
            "bursts of new connections fit"
            if backlog >= ENOUGH_BACKLOG
            else "bursts of new connections overflow it; raise it with sysctl",
            good=backlog >= ENOUGH_BACKLOG,
        )


def _sleep(machine: Machine) -> Check:
    """Tell what a sleep costs the client here, and what it would on CPUs that are kept awake."""
    from webdyno.host.awake import kept_awake, sleep_cost

    cpu = machine.split.client[-1]
    usual = sleep_cost(cpu)
    found = f"{usual.cpu_us:.0f} µs of CPU, ends {usual.late_us:.0f} µs late"
    try:
        with kept_awake([cpu]):
            awake = sleep_cost(cpu)
    except OperationError as error:
        return Check("a sleep", found, str(error))
    if awake.cpu_us > WORTH_IT * usual.cpu_us and awake.late_us > WORTH_IT * usual.late_us:
        return Check(
            "a sleep", found, "an open loop pays it for each request that it sends on time"
        )
    return Check(
        "a sleep",
        found,
        f"{awake.cpu_us:.0f} µs and {awake.late_us:.0f} µs on CPUs kept awake: for open loops give "
        "--set testbed.keep_awake=true",
        good=False,
    )


def _server_user(name: str | None) -> Check:
    if name is None:
        return Check("user", f"uid {os.geteuid()}", "servers run as the same user")
    return Check("user", "root", f"servers run as {name}")


def _cpu_accounting() -> Check:
    from webdyno.host.control_group import ControlGroup

    if not ControlGroup.possible():
        return Check("CPU time", "from /proc", "of ended processes only to 10 ms; root does better")
    return Check("CPU time", "from cgroup-v2", "exact, processes that have ended included")


def _engine() -> Check:
    from webdyno.generator.loadgen import find_loadgen

    try:
        return Check("load engine", str(find_loadgen()), "built")
    except UserError as error:
        return Check("load engine", "missing", str(error), good=False)


def _package_checks(catalogue: Catalogue) -> Iterator[Check]:
    from webdyno.stack.needs import missing_packages
    from webdyno.stack.programs import unbuilt

    for stack in catalogue.stacks.values():
        missing = missing_packages([stack])
        wanting = f"missing: {', '.join(missing)}" if missing else unbuilt([stack]) and "not built"
        yield Check(
            f"stack {stack.name}",
            wanting or "installed",
            "webdyno asks to provide that when it is needed" if wanting else stack.title,
            good=not wanting,
        )


def _listed(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus))
