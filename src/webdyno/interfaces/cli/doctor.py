"""`webdyno doctor`: what this machine offers; calibrates it, and installs what stacks need."""

import os
import sys
from collections.abc import Iterator, Sequence
from json import dumps
from typing import TYPE_CHECKING, Annotated, NamedTuple

from webdyno.core.errors import OperationError, UserError
from webdyno.core.registry import command
from webdyno.interfaces.cli.experiment_flags import THIS_TESTBED, TestbedFlags
from webdyno.interfaces.cli.flags import (
    TEXT,
    USUAL_TIME,
    CatalogDirs,
    Format,
    RunFlags,
    TimeFlag,
    Yes,
    flag,
    is_json,
    parse_connections,
    parse_size,
)

if TYPE_CHECKING:  # rich and pydantic take a while to import
    from rich.console import Console

    from webdyno.config import Catalogue
    from webdyno.core.testbed import Calibration, Machine

BODIES = ("100B", "10KB", "100KB", "1MB")
CONNECTIONS = ("64",)
CALIBRATION_S = 60.0
THIS_MACHINE, ENGINE = "this machine", "load engine"
ENOUGH_FILES = 20_000
"""Open files that suffice for the largest number of connections which people ask about."""
ENOUGH_BACKLOG = 1024
WORTH_IT = 0.7
"""CPUs are better kept awake where that leaves less than this share of a sleep's cost."""


def doctor(
    *stacks: Annotated[str, flag("STACK: with --install: only what these need [default: all]")],
    calibrate: Annotated[
        bool, flag("Measure what the load generator reaches here at most, and the noise.")
    ] = False,
    install: Annotated[
        bool, flag("Install and build what stacks, and all their sites, need.")
    ] = False,
    body: Annotated[Sequence[str], flag("SIZE: with --calibrate: length of responses.")] = BODIES,
    connections: Annotated[
        Sequence[str], flag("COUNT: with --calibrate: connections.", "-c", "--connections")
    ] = CONNECTIONS,
    time: TimeFlag = USUAL_TIME,
    testbed: TestbedFlags = THIS_TESTBED,
    format_: Format = TEXT,
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> None:
    """Look at this machine: cores, limits, packages, and what they mean for results.

    --calibrate takes a minute; later runs then warn where the client or the link is saturated.

    For example

        webdyno doctor

        webdyno doctor --calibrate --testbed netns --link 100mbit

        webdyno doctor --install nginx-phpfpm apache-prefork-modphp
    """
    from webdyno.config import Catalogue

    as_json = is_json(format_)
    if stacks and not install:
        raise UserError(f"{stacks[0]}: stacks are for --install, which was not given")
    if calibrate and install:
        raise UserError("--calibrate and --install: one after the other; leave one of them out")
    if calibrate:
        _calibrate(body, connections, time.seconds or CALIBRATION_S, testbed, as_json=as_json)
    elif install:
        _install(stacks, Catalogue.load(catalog), yes=yes)
    else:
        _look_at_machine(Catalogue.load(catalog), as_json=as_json)


def _install(names: Sequence[str], catalogue: "Catalogue", *, yes: bool) -> None:
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.launch.consent import provide
    from webdyno.launch.foreign import agree_to_use
    from webdyno.media.console import plain_console

    wanted = [catalogue.stack(name) for name in names] or list(catalogue.stacks.values())
    sites = {site.name: site for stack in wanted for site in catalogue.sites_for(stack)}
    caller = at_terminal(RunFlags(yes=yes))
    agree_to_use(catalogue, caller)
    provide(wanted, list(sites.values()), [], caller)
    plain_console().print(f"everything is there for {', '.join(stack.name for stack in wanted)}")


def _calibrate(
    body: Sequence[str],
    connections: Sequence[str],
    budget_s: float,
    testbed: TestbedFlags,
    *,
    as_json: bool,
) -> None:
    from webdyno.measure.calibration import measure_calibration, save_calibration
    from webdyno.media.console import plain_console

    bodies = [parse_size(text, "--body") for text in body]
    counts = [parse_connections(text, "-c") for text in connections]
    console = plain_console(stderr=True)
    with console.status("calibrating") as status:

        def notify(doing: str) -> None:
            status.update(doing)
            if not console.is_terminal:
                print(doing, file=sys.stderr)  # noqa: T201

        calibration = measure_calibration(bodies, counts, testbed.settings(), budget_s, notify)
    path = save_calibration(calibration)
    if as_json:
        print(calibration.model_dump_json(indent=2))  # noqa: T201
        return
    out = plain_console()
    _show_calibration(out, calibration)
    out.print(f"\nkept in {path}", style="dim", soft_wrap=True)


def _show_calibration(out: "Console", calibration: "Calibration") -> None:
    from webdyno.media.console import print_table

    out.print("The most that this client reaches, against a server that does nothing\n")
    headings = ("body", "connections", "req/s", "Mbit/s", "client busy", "limit")
    ceilings = [
        (
            f"{each.body_bytes:,} B",
            f"{each.connections}{'' if each.keepalive == 'always' else ' new each time'}",
            f"{each.throughput_rps:,.0f}",
            f"{each.body_bytes_per_s * 8 / 1e6:,.0f}",
            f"{each.client_busy:.0%}",
            each.limited_by,
        )
        for each in calibration.ceilings
    ]
    print_table(headings, ceilings, headings[:-1])
    out.print()
    delays = (("timers", calibration.timer_delay), ("requests", calibration.send_delay))
    late = [
        (name, *(f"{late_us:,.0f}" for late_us in (delay.p50_us, delay.p99_us, delay.max_us)))
        for name, delay in delays
    ]
    percentiles = ("median", "99%", "most")
    print_table(("late by, µs", *percentiles), late, percentiles)
    out.print()
    lengths = list(calibration.noise[0].visible)
    labels = {"throughput_rps": "requests per second", "server_cpu_us": "CPU per request"}
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


def _look_at_machine(catalogue: "Catalogue", *, as_json: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from webdyno.media.console import plain_console

    checks = [*check_machine(), check_catalogue(catalogue)]
    if as_json:
        print(dumps([check._asdict() for check in checks], indent=2))  # noqa: T201
        return
    good, bad = Text("ok", "green"), Text("!", "yellow")
    table = Table.grid(padding=(0, 2))
    for check in checks:
        table.add_row(good if check.good else bad, check.what, f"{check.found}: {check.meaning}")
    plain_console().print(table)


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
    from webdyno.load.engine import find_loadgen
    from webdyno.probes.instructions import why_uncounted

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
