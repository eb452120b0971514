"""`webdyno up`, `ui` and `mcp`: what serves until Ctrl-C, or until an agent hangs up."""

import logging
import os
import socket
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import Exit, OperationError, UserError, lacks_package
from webdyno.interfaces.cli.flags import (
    NOTHING_OF_OWN,
    CatalogDirs,
    LoadsOtherMachines,
    Overrides,
    OwnFlags,
    Paths,
    RunFlags,
    TargetIsMine,
    Yes,
    flag,
)

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Catalogue
    from webdyno.core.load import Load
    from webdyno.core.records import Response
    from webdyno.core.stack import Site, Stack
    from webdyno.launch.arrangement import OneSystem
    from webdyno.load.interface import Users

GLANCE_S = 0.5
"""How often to look whether the servers still live."""
LOAD, PROTOCOL = "load.", "protocol="
"""How settings begin of what is asked, and of the setting that this sets."""
MOST_ASKED = 20
HIGHEST_PORT = 65_535
BACKLOG = 64
"""Connections to the page that are accepted at once: fewer than those that it awaits."""
ANSWERED_WITHIN_S = 3
"""So long responses are waited for when the page's server is to end."""


def up(
    system: Annotated[
        str, flag("SYSTEM: a stack, or cmd:COMMAND, rev:REVISION, conf:FILE, image:NAME.")
    ],
    *,
    site: Annotated[
        str | None, flag("NAME: what it serves [default: the first that it can]")
    ] = None,
    port: Annotated[int | None, flag("NUMBER: port on 127.0.0.1 [default: a free one]")] = None,
    path: Paths = (),
    own: OwnFlags = NOTHING_OF_OWN,
    set_: Overrides = (),
    catalog: CatalogDirs = (),
    yes: Yes = False,
    loads_other_machines: LoadsOtherMachines = False,
    target_is_mine: TargetIsMine = False,
) -> Exit:
    """Start one system, print its URL, and keep it up until Ctrl-C.

    For example

        webdyno up nginx

        webdyno up apache-prefork --site static --port 8080 --set workers=2

        webdyno up 'cmd:./server --port $PORT' --path /items    # a system of your own

        webdyno up conf:nginx.conf --set load.protocol=h2
    """
    from webdyno.config import Catalogue, check_fit, read_overrides, read_settings
    from webdyno.host.this_machine import Testbed
    from webdyno.host.workspace import Workspace
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.launch.arrangement import one_system
    from webdyno.launch.consent import (
        agree_to_secrets,
        provide,
        refuse_other_machines,
        vouched_targets,
    )
    from webdyno.load.loadgen import Loadgen
    from webdyno.measure.planned import first_request, load_on, planned_requests
    from webdyno.measure.preflight import ask_all, ask_as_user
    from webdyno.media.console import plain_console
    from webdyno.servers.starting import open_stack
    from webdyno.systems.kinds import NamedSystem

    if port is not None and not 1 <= port <= HIGHEST_PORT:
        raise UserError(f"--port {port}: should be from 1 to {HIGHEST_PORT}")
    name, asked_for = NamedSystem.of(system)
    called = name or asked_for
    of_load = [text for text in set_ if text.startswith(LOAD)]
    of_stack = [text.removeprefix(f"{called}.") for text in set_ if not text.startswith(LOAD)]
    known = Catalogue.load(catalog)
    caller = at_terminal(RunFlags(yes, loads_other_machines, target_is_mine))
    load = {**own.load, **({"paths": list(path)} if path else {})}
    resolved = one_system(asked_for, own.keys(), known, load, read_overrides(of_load), caller)
    wanted, catalogue = resolved.stack, resolved.catalogue
    front = wanted.services[wanted.front].service.own
    if port and front and front.container_port:
        raise UserError(
            f"--port {port}: a container has a network of its own and listens on port "
            f"{front.container_port} there; --env PORT=N gives it another"
        )
    served = catalogue.site(site) if site else _first_site(catalogue, wanted)
    clients = load_on(wanted, resolved.load)
    asked = planned_requests(resolved.requests, clients, served, os.environ)
    check_fit(wanted, served, catalogue.stacks.values(), f"--site {served.name}")
    users = _users_of(resolved, clients)
    first = first_request((*(users.login if users else ()), *asked), clients)
    spoken = clients.protocol
    if spoken != "http" and not any(text.startswith(PROTOCOL) for text in of_stack):
        of_stack.append(f"{PROTOCOL}{spoken}")
    settings = read_settings(wanted, of_stack, served)
    refuse_other_machines([wanted], caller)
    vouched = vouched_targets([wanted], [served], caller)
    agree_to_secrets([wanted], resolved.asked, caller)
    provide([wanted], [served], [], caller)
    console, testbed = plain_console(), Testbed().vouching_for(vouched)
    show = partial(console.print, markup=False, soft_wrap=True)
    with (
        Workspace() as scratch,
        open_stack(
            wanted,
            settings,
            served,
            folder=scratch.make_kept(),
            testbed=testbed,
            port=port,
            # Whatever is answered: to show that is what it was started for.
            asked=first and replace(first, is_right=lambda *_: True),
        ) as running,
    ):
        try:
            if not wanted.is_own:
                show(f"{called} serves {served.name} at {running.url}{served.ready_path}")
            else:
                show(f"{called} is up at {running.url}")
                if more := running.services()[wanted.front].listens_as_well():
                    show(
                        f"  it listens on {' and '.join(more)} as well, which isn't measured: a "
                        "proxy in front of it has to listen on $PORT itself"
                    )
            if wanted.protocol == "http" and (wanted.is_own or path):
                gets = [request for request in asked if request.method == "GET"][:MOST_ASKED]
                entry = testbed.client_entry()
                if users and gets:
                    with Loadgen((), entry) as engine:
                        responses = ask_as_user(running.url, gets, clients, users, engine)
                else:
                    responses = ask_all(running.url, gets, clients, entry)
                if users and users.login and not any(its.is_login for its in responses):
                    show(f"  logged in by {users.login[-1].method} {users.login[-1].path}")
                for response in responses:
                    show(f"  {_response_words(response)}")
            kept = f"configuration and logs: {scratch.path}/kept (removed at the end)"
            console.print(f"{kept}\nCtrl-C ends it.", style="dim")
            while True:
                time.sleep(GLANCE_S)
                running.check_alive()
        except KeyboardInterrupt:
            console.print("\nstopped")
    return Exit.OK


def _users_of(system: "OneSystem", load: "Load") -> "Users | None":
    """Return who logs in; None, said why, where a name or password isn't known here."""
    from webdyno.measure.planned import planned_users
    from webdyno.media.console import notify

    try:
        return planned_users(system, system.requests, load, os.environ)
    except UserError as error:
        notify(f"nobody logs in: {error}")
        return None


def _response_words(response: "Response") -> str:
    """Return what is answered to a GET: `/items: 200, 1,234 bytes`."""
    from webdyno.core.format import count
    from webdyno.core.request import header

    if response.status is None:
        return f"{response.path}: {response.error}"
    to = header(dict(response.headers), "location")
    leads = f", leads to {to!r:.200}" if to else ""
    return f"{response.path}: {response.status}, {count(response.body_bytes, 'byte')}{leads}"


def _first_site(catalogue: "Catalogue", stack: "Stack") -> "Site":
    from webdyno.systems.variants import OWN_SITE

    if stack.is_own:
        return catalogue.site(OWN_SITE)
    if fitting := catalogue.sites_for(stack):
        return fitting[0]
    raise UserError(
        f"there is no site that {stack.name} can serve: it serves {', '.join(stack.serves)}"
    )


def ui(
    folder: Annotated[Path, flag("DIR: the folder whose runs are shown.")] = Path("runs"),
    *,
    port: Annotated[int, flag("NUMBER: where it listens [default: a free port]")] = 0,
    catalog: CatalogDirs = (),
) -> Exit:
    """Show the runs of a folder on a local web page.

    Runs are shown live, compared and exported, and comparisons can be started; what would build or
    run code of yours (rev:, conf:) is asked here, on the terminal. It listens on this
    machine alone; the address that it prints has a token in it. Ctrl-C ends it, and a run that was
    started from it.

    For example

        webdyno ui

        webdyno ui results --port 8080
    """
    if folder != Path("runs") and not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    if not 0 <= port <= HIGHEST_PORT:
        raise UserError(f"--port {port}: should be from 0 to {HIGHEST_PORT}")
    import uvicorn

    from webdyno.config import Catalogue
    from webdyno.interfaces.cli.progress import ask_person, at_terminal
    from webdyno.interfaces.ui.app import make_app
    from webdyno.interfaces.ui.guard import ImpatientProtocol, fresh_address
    from webdyno.interfaces.ui.runs import Runs
    from webdyno.interfaces.ui.starting import Starter
    from webdyno.launch.foreign import agree_to_use
    from webdyno.media.console import plain_console

    known = Catalogue.load(catalog)
    if sys.stdin.isatty():  # else pages begin nothing of it, unless it was agreed to before
        agree_to_use(known, at_terminal(RunFlags()))
    runs, token = Runs(folder), token_urlsafe(24)
    ask = partial(ask_person, usual=False) if sys.stdin.isatty() else None
    starter = Starter(runs.root, ask)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address := fresh_address(), port))
            listening.listen()  # who reads the address may ask at once
        except OSError as error:
            raise OperationError(f"--port {port}: can't be listened on: {error.strerror}") from None
        port = listening.getsockname()[1]
        app = make_app(runs, known, starter, token, port, _defect, address)
        plain_console().print(f"http://{address}:{port}/{token}/", soft_wrap=True)
        config = uvicorn.Config(
            app,
            log_level="critical",
            http=ImpatientProtocol,
            ws="none",
            backlog=BACKLOG,
            timeout_graceful_shutdown=ANSWERED_WITHIN_S,
        )
        # Whoever connects, without the token, would have it write to this terminal.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            starter.end()
            if any(
                thread is not threading.main_thread() and not thread.daemon
                for thread in threading.enumerate()
            ):
                # One still judges a run: Python would wait for it, however long.
                sys.stdout.flush()
                os._exit(Exit.INTERRUPTED)
    return Exit.OK


def _defect(error: Exception) -> str:
    from webdyno.launch.ending import keep_traceback
    from webdyno.media.console import notify

    said = keep_traceback(error, "ui")
    notify(said)
    return said


def mcp(
    *,
    allow_commands: Annotated[
        bool, flag("Let tools run what the agent names: cmd:, rev:, conf:, image:, [state].")
    ] = False,
) -> Exit:
    """Offer compare, gate, capacity, explain and report as tools to an agent.

    It speaks the Model Context Protocol on standard input and output. An agent starts it in the
    folder of your application; runs are kept in runs/ there. Without --allow-commands its tools
    measure stacks of the catalog and what runs already (url:); gates build revisions, and need it.

    For example

        claude mcp add webdyno -- webdyno mcp --allow-commands

        webdyno mcp
    """
    try:
        from webdyno.interfaces.mcp import make_server
    except ModuleNotFoundError as lacking:
        if (lacking.name or "").startswith("webdyno"):
            raise
        raise lacks_package("the tools for agents take", "mcp") from None
    make_server(allow_commands=allow_commands).run("stdio")
    return Exit.OK
