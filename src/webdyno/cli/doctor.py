"""`webdyno doctor`: what this machine offers; calibrates it, and installs what stacks need."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.cli.experiment_flags import THIS_TESTBED, TestbedFlags
from webdyno.cli.flags import (
    TEXT,
    USUAL_TIME,
    CatalogDirs,
    Format,
    RunFlags,
    TimeFlag,
    Yes,
    is_json,
)
from webdyno.model.errors import UserError

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.definitions import Catalogue

BODIES = ("100B", "10KB", "100KB", "1MB")
CONNECTIONS = ("64",)
CALIBRATION_S = 60.0


def doctor(
    *stacks: Annotated[
        str, Parameter(help="STACK: with --install: only what these need [default: all]")
    ],
    calibrate: Annotated[
        bool,
        Parameter(help="Measure what the load generator reaches here at most, and the noise."),
    ] = False,
    install: Annotated[
        bool, Parameter(help="Install and build what stacks, and all their sites, need.")
    ] = False,
    body: Annotated[
        Sequence[str], Parameter(help="SIZE: with --calibrate: length of responses.")
    ] = BODIES,
    connections: Annotated[
        Sequence[str],
        Parameter(name=["-c", "--connections"], help="COUNT: with --calibrate: connections."),
    ] = CONNECTIONS,
    time: TimeFlag = USUAL_TIME,
    testbed: TestbedFlags = THIS_TESTBED,
    format_: Format = TEXT,
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> None:
    """Look at this machine: cores, limits, packages, and what they mean for results.

    Later runs know from --calibrate when the client or the link is saturated. It takes a minute.

    For example

        webdyno doctor

        webdyno doctor --calibrate --testbed netns --link 100mbit

        webdyno doctor --install nginx-phpfpm apache-prefork-modphp
    """
    from webdyno.definitions import Catalogue

    as_json = is_json(format_)
    if stacks and not install:
        raise UserError(f"{stacks[0]}: stacks are for --install, which was not given")
    if calibrate and install:
        raise UserError("--calibrate and --install: one after the other; leave one of them out")
    if calibrate:
        from webdyno.cli.calibration import calibrate as measure

        measure(body, connections, time.seconds or CALIBRATION_S, testbed, as_json=as_json)
    elif install:
        _install(stacks, Catalogue.load(catalog), yes=yes)
    else:
        from webdyno.cli.machine_checks import look_at_machine

        look_at_machine(Catalogue.load(catalog), as_json=as_json)


def _install(names: Sequence[str], catalogue: "Catalogue", *, yes: bool) -> None:
    """Install what stacks and their sites need, ahead of any run."""
    from webdyno.cli.progress import at_terminal
    from webdyno.lab.consent import agree_to_catalogues, provide
    from webdyno.report.console import plain_console
    from webdyno.stack.programs import unbuilt

    wanted = [catalogue.stack(name) for name in names] or list(catalogue.stacks.values())
    sites = {site.name: site for stack in wanted for site in catalogue.sites_for(stack)}
    caller = at_terminal(RunFlags(yes=yes))
    agree_to_catalogues([stack for stack in wanted if unbuilt([stack])], [], caller)
    provide(wanted, list(sites.values()), [], caller)
    plain_console().print(f"everything is there for {', '.join(stack.name for stack in wanted)}")
