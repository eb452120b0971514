"""`webdyno up`: one stack in the foreground, for curl and for curiosity."""

import time
from typing import Annotated

from cyclopts import Parameter, validators

from webdyno.cli.agreement import agree_to_catalogues, provide_packages
from webdyno.cli.console import plain_console
from webdyno.cli.exits import Exit
from webdyno.cli.flags import CatalogDirs, KnobSettings, Yes
from webdyno.cli.own_systems import NO_FLAGS, OwnFlags, stack_of
from webdyno.definitions import Catalogue, check_fit, read_knobs
from webdyno.model.mistake import Mistake
from webdyno.model.site import Site
from webdyno.model.stack import Stack

GLANCE_S = 0.5
"""How often to look whether the servers still live."""


def up(
    stack: Annotated[
        str,
        Parameter(
            help="A stack of the catalogue, see `webdyno stacks`, or a system of your own: "
            "cmd:COMMAND, rev:REVISION, conf:FILE, image:NAME."
        ),
    ],
    *,
    site: Annotated[str | None, Parameter(help="What to serve; else the first that fits.")] = None,
    port: Annotated[
        int | None,
        Parameter(
            help="Port on 127.0.0.1; else a free one.",
            validator=validators.Number(gte=1, lte=65535),
        ),
    ] = None,
    own: OwnFlags = NO_FLAGS,
    set_: KnobSettings = (),
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> Exit:
    """Start one stack, print its URL, and keep it up until Ctrl-C.

    For example

        webdyno up nginx

        webdyno up apache-prefork --site static --port 8080 --set workers=2

        webdyno up 'cmd:./server --port $PORT'      # a system of your own, see docs/own.md
    """
    from webdyno.bench import Bench
    from webdyno.stack import start_stack

    wanted, catalogue = stack_of(stack, own, Catalogue.load(catalog), yes=yes)
    front = wanted.services[wanted.front].service.own
    if port and front and front.container_port:
        raise Mistake(
            f"--port {port}: a container has a network of its own and listens on port "
            f"{front.container_port} there; --env PORT=N tells it another"
        )
    served = catalogue.site(site) if site else _first_site(catalogue, wanted)
    check_fit(wanted, served, catalogue.stacks.values(), f"--site {served.name}")
    knobs = read_knobs(wanted, set_, served)
    agree_to_catalogues([wanted], [served], yes=yes)
    provide_packages([wanted], [served], yes=yes)
    console, bench = plain_console(), Bench()
    with (
        bench.workspace() as scratch,
        start_stack(
            wanted, knobs, served, folder=scratch.path / "kept", bench=bench, port=port
        ) as running,
    ):
        try:
            where = f"{running.url}{served.ready_path}"
            console.print(f"{stack} serves {served.name} at {where}", markup=False, soft_wrap=True)
            console.print(
                f"configuration and logs: {scratch.path}/kept (removed at the end)", style="dim"
            )
            console.print("Ctrl-C ends it.", style="dim")
            while True:
                time.sleep(GLANCE_S)
                running.check_alive()
        except KeyboardInterrupt:
            console.print("\nstopped")
    return Exit.OK


def _first_site(catalogue: Catalogue, stack: Stack) -> Site:
    if fitting := catalogue.sites_for(stack):
        return fitting[0]
    raise Mistake(
        f"there is no site that {stack.name} can serve: it serves {', '.join(stack.serves)}"
    )
