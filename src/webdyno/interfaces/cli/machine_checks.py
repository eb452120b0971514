"""What `webdyno doctor` looks at: CPUs, limits, tools, and what they mean for results."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from webdyno.core.errors import OperationError, UserError
from webdyno.core.registry import command

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Catalogue
    from webdyno.core.testbed import Machine

THIS_MACHINE, ENGINE = "this machine", "load engine"
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


def check_machine() -> list[Check]:
    """Look at this machine; what it can do at all comes first."""
    from webdyno.host.this_machine import Testbed

    testbed = Testbed()
    machine = testbed.describe()
    user = testbed.user.name if testbed.user else None
    tools = list(_check_tools(user))
    return [
        _ability(machine, tools),
        *_check_cpus(machine),
        *_check_limits(machine),
        _check_sleep(machine.split.client[-1]),
        *tools,
        _check_containers(),
    ]


def _ability(machine: "Machine", tools: list[Check]) -> Check:
    can = "can compare"
    if any(check.what == ENGINE and not check.good for check in tools):
        return Check(THIS_MACHINE, "can't compare yet", "its load engine is missing", good=False)
    if machine.split.shared:
        return Check(
            THIS_MACHINE, can, "roughly, as servers and client share its one CPU", good=False
        )
    if machine.virtualisation:
        meaning = "its hardware is shared, so intervals get wider and runs longer"
        return Check(THIS_MACHINE, can, meaning, good=False)
    return Check(THIS_MACHINE, can, "its hardware is not shared")


def _check_cpus(machine: "Machine") -> Iterator[Check]:
    split = machine.split
    cores = f"{len(machine.cpus)} CPUs, {machine.cpu_model}"
    servers, client = (", ".join(map(str, cpus)) for cpus in (split.servers, split.client))
    meaning = f"servers on CPU {servers}, client on {client}"
    if split.shared:
        meaning = "servers and client share it: indicative only"
    yield Check("processor", cores, meaning, good=not split.shared)
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


def _check_limits(machine: "Machine") -> Iterator[Check]:
    files = machine.open_files_limit
    enough = files >= ENOUGH_FILES
    meaning = "connections are limited only by this"
    if not enough:
        meaning = f"about {max(files - 100, 0)} connections at most; raise it with ulimit -n"
    yield Check("open files", f"{files} per process", meaning, good=enough)
    backlog = machine.listen_backlog_limit
    if backlog is not None:
        enough = backlog >= ENOUGH_BACKLOG
        meaning = "bursts of new connections fit"
        if not enough:
            meaning = "bursts of new connections overflow it; raise it with sysctl"
        yield Check("listen queue", f"net.core.somaxconn {backlog}", meaning, good=enough)


def _check_sleep(cpu: int) -> Check:
    """Report what a sleep costs the client here, and what it would on CPUs that are kept awake."""
    from webdyno.host.machine import kept_awake, sleep_cost

    usual = sleep_cost(cpu)
    cost = f"{usual.cpu_us:.0f} µs of CPU, ends {usual.late_us:.0f} µs late"
    try:
        with kept_awake([cpu]):
            awake = sleep_cost(cpu)
    except OperationError as error:
        return Check("a sleep", cost, str(error))
    if awake.cpu_us > WORTH_IT * usual.cpu_us and awake.late_us > WORTH_IT * usual.late_us:
        return Check("a sleep", cost, "an open loop pays it for each request that it sends on time")
    return Check(
        "a sleep",
        cost,
        f"{awake.cpu_us:.0f} µs and {awake.late_us:.0f} µs on CPUs kept awake: for open loops give "
        "--set testbed.keep_awake=true",
        good=False,
    )


def _check_tools(user: str | None) -> Iterator[Check]:
    from webdyno.host.control_group import ControlGroup
    from webdyno.load.loadgen import find_loadgen
    from webdyno.probes.profile import why_uncounted

    if user is None:
        yield Check("user", f"uid {os.geteuid()}", "servers run as the same user")
    else:
        yield Check("user", "root", f"servers run as {user}")
    if ControlGroup.possible():
        yield Check("CPU time", "from cgroup-v2", "exact, processes that have ended included")
    else:
        yield Check("CPU time", "from /proc", "of ended processes only to 10 ms; root does better")
    if why := why_uncounted():
        yield Check("instructions", "not counted", why)
    else:
        limits = "limits such as 'instructions > +2%'"
        yield Check("instructions", "counted in user space", limits)
    try:
        yield Check(ENGINE, "built", str(find_loadgen()))
    except UserError as error:
        yield Check(ENGINE, "missing", str(error), good=False)


def _check_containers() -> Check:
    from webdyno.systems.containers.choice import engine_here

    try:
        meaning = "runs image:NAME, Dockerfiles and Compose files"
        return Check("containers", f"by {engine_here()}", meaning)
    except (OperationError, UserError) as error:
        return Check("containers", "can't be run yet", str(error), good=False)


def check_catalogue(catalogue: "Catalogue") -> Check:
    """Count the servers of the catalog that are installed; the others are offered when used."""
    from webdyno.servers.needs import is_installed

    stacks = catalogue.stacks.values()
    installed = [stack.name for stack in stacks if is_installed(stack)]
    return Check(
        "catalog",
        f"{len(installed)} of {len(stacks)} servers are installed",
        f"others are offered when you use them ({command('list')})",
    )
