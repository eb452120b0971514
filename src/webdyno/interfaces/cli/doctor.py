"""`webdyno doctor`: what this machine offers; calibrates it, and installs what stacks need."""

import sys
from collections.abc import Sequence
from json import dumps
from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import UserError
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
    from webdyno.core.testbed import Calibration

BODIES = ("100B", "10KB", "100KB", "1MB")
CONNECTIONS = ("64",)
CALIBRATION_S = 60.0


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
    from webdyno.launch.consent import agree_to_catalogues, provide
    from webdyno.media.console import plain_console
    from webdyno.servers.needs import unbuilt

    wanted = [catalogue.stack(name) for name in names] or list(catalogue.stacks.values())
    sites = {site.name: site for stack in wanted for site in catalogue.sites_for(stack)}
    caller = at_terminal(RunFlags(yes=yes))
    agree_to_catalogues([stack for stack in wanted if unbuilt([stack])], [], caller)
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

    from webdyno.interfaces.cli.machine_checks import check_catalogue, check_machine
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
