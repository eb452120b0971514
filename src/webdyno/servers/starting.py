"""Starts a stack: from its definition to a server that answers, and to its end.

`ready.py` waits for the answer. What can't be started is one message, with the server's own words.
"""

import errno
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import make_folder
from webdyno.core.format import indent
from webdyno.core.setting import SettingValue
from webdyno.core.stack import Site, Stack
from webdyno.host.control_group import ControlGroup, MemoryLimit, forget_groups
from webdyno.host.copies import copy_own
from webdyno.host.netns import SharedNetwork
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser, hand_over, make_private
from webdyno.host.workspace import Workspace, home_folder, open_folder
from webdyno.servers.layout import Deployment, lay_out, testbed_of
from webdyno.servers.prepared import FILLED, prepare_site, site_view
from webdyno.servers.ready import FirstRequest
from webdyno.servers.running import Bounds, RunningStack
from webdyno.servers.service import StackDied
from webdyno.servers.service_graph import (
    Placement,
    ResolvedStack,
    demand_port,
    is_asked_from_elsewhere,
    on_ports,
    refuse_open_port,
    resolve_stack,
)

LINK_KEPT_FOR_S = 86_400.0


class StartOptions(TypedDict, total=False):
    """What else may be said of a stack's start."""

    port: int | None
    """Of the front; a free one unless given."""
    memory_bytes: int | None
    """Limits all services together."""
    placement: Placement | None
    """Only the services of this host are started."""
    asked: FirstRequest | None
    """Shows that a user's own system is ready."""


@contextmanager
def open_stack(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    *,
    folder: Path,
    testbed: Testbed,
    **options: Unpack[StartOptions],
) -> Iterator[RunningStack]:
    """Start a stack and wait until it answers for the site; nothing of it is left afterwards.

    `settings` are those of stack and site; `folder` keeps rendered configurations and logs. Raise
    OperationError, with the server's own words, when it can't be started.
    """
    with ExitStack() as exits:
        with _one_message(stack, folder):
            layout = _lay_out(stack, settings, site, folder, testbed, **options)
            running = exits.enter_context(layout)
            running.start()
        yield running


def ask_versions(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    testbed: Testbed,
    asked: FirstRequest | None = None,
) -> dict[str, str]:
    """Ask the services of a stack, by role, for their versions; a user's own system is started.

    Nobody knows yet whether that starts: raise OperationError, with its own words, where it
    doesn't.
    """
    with _one_message(stack, Path.cwd()), Workspace() as scratch:
        folder = scratch.make_kept()
        with _lay_out(stack, settings, site, folder, testbed, asked=asked) as running:
            if stack.is_own:
                try:
                    running.start()
                except StackDied as died:  # without a word of a log that nobody keeps
                    tail = indent(died.log_tail)
                    said = f"; what it said last:\n{tail}" if died.log_tail else ""
                    raise OperationError(died.what + said) from None
            return running.versions()


@contextmanager
def _lay_out(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    folder: Path,
    testbed: Testbed,
    **options: Unpack[StartOptions],
) -> Iterator[RunningStack]:
    """Make a stack ready to be started, with all that it needs; take that away at the end."""
    port, placement = options.get("port"), options.get("placement")
    memory_bytes = options.get("memory_bytes")
    resolved = _resolve(stack, settings, site, testbed, placement)
    if port is not None:
        demand_port(port)
    for role in resolved.roles:
        _refuse_unsafe(folder, testbed_of(role.service, testbed).user)
    make_folder(folder)
    with ExitStack() as exits:
        prepared = prepare_site(site, testbed)
        exits.callback(prepared.release)
        files = prepared.folder
        if placement is not None:
            files = exits.enter_context(_same_on_all_hosts(files, placement))
        workspace = exits.enter_context(Workspace())
        bounds = exits.enter_context(_bounds(stack, testbed, workspace, memory_bytes))
        own = stack.services[stack.front].service.own
        network = None
        if own and own.services_inside:
            network = exits.enter_context(SharedNetwork(testbed.split.rest)).place
        state = make_private(workspace.path / "_state")
        copy_own(prepared.state, state)
        hand_over(state, testbed.user)
        deployment = Deployment(
            testbed=testbed,
            workspace=workspace,
            keep=folder,
            site=site,
            site_view=site_view(site, files, state, resolved.site_settings),
            kept_data=prepared.data() | dict(FILLED.of(resolved.roles) or {}),
            placement=placement,
            network=network,
        )
        laid_out = lay_out(resolved.roles, deployment, stack.front, port).services
        running = RunningStack(
            stack,
            site,
            laid_out,
            testbed=testbed,
            bounds=bounds,
            prepared=prepared,
            here=placement.mine if placement else frozenset(laid_out),
            asked=options.get("asked"),
        )
        exits.callback(running.stop)
        yield running


def _resolve(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    testbed: Testbed,
    placement: Placement | None,
) -> ResolvedStack:
    """Return the roles of a stack; raise UserError for what isn't started on such a testbed."""
    resolved = resolve_stack(stack, site, settings, server_cpus=len(testbed.split.servers))
    if placement is not None:
        own = stack.services[stack.front].service.own
        if own and own.setup:
            raise UserError(
                f"{own.written}: setup runs once on the host of all services, and these have "
                "several; prepare runs before each start, on the program's host"
            )
        resolved = replace(resolved, roles=on_ports(resolved.roles, placement))
    for role in resolved.roles:
        is_private = testbed.has_own_network or (
            placement is not None and is_asked_from_elsewhere(role, resolved.roles, placement)
        )
        refuse_open_port(role, stack, is_private=is_private)
        own = role.service.own
        if own and own.elsewhere and own.elsewhere not in testbed.vouched:
            raise UserError(
                f"{own.written}: nobody vouches for {own.elsewhere}, so it isn't loaded"
            )
    return resolved


@contextmanager
def _bounds(
    stack: Stack, testbed: Testbed, workspace: Workspace, memory_bytes: int | None
) -> Iterator[Bounds]:
    """Set control groups up for all services together, with their limits."""
    theirs = stack.has_containers or stack.runs_already
    if theirs and testbed.servers_cpu_time is not None:
        raise OperationError(
            f"{stack.name}: a share of a CPU can't be kept for containers, nor for what runs "
            "already; give whole CPUs"
        )
    if stack.has_groups_elsewhere and memory_bytes is not None:
        raise OperationError(
            f"{stack.name}: a memory limit can't be kept for these containers, which their engine "
            "has in control groups of its own: exclude the limit, or have Podman run them, as root"
        )
    name = workspace.name
    with ExitStack() as exits:
        exits.callback(forget_groups, name)
        none = stack.runs_already or stack.has_groups_elsewhere
        group = None if none else ControlGroup.create(name)
        if group is not None:
            exits.callback(group.end)
        cpu = testbed.cpu_limit(workspace, group)
        memory = None if memory_bytes is None else MemoryLimit.impose(name, group, memory_bytes)
        yield Bounds(name, group, cpu, memory)


@contextmanager
def _same_on_all_hosts(files: Path, placement: Placement) -> Iterator[Path]:
    """A server names a file to another one on its host, where it must have the same path."""
    links = open_folder(home_folder() / "spread")
    for old in links.iterdir():  # of agents that were killed
        if time.time() - old.lstat().st_mtime > LINK_KEPT_FOR_S:
            old.unlink(missing_ok=True)
    link = links / placement.name
    with suppress(FileExistsError):  # of another host that is this machine as well
        link.symlink_to(files)
    try:
        yield link
    finally:
        link.unlink(missing_ok=True)


@contextmanager
def _one_message(stack: Stack, folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        fix = ""
        if error.errno == errno.ENOSPC:  # where logs are kept, or where servers have their files
            kept = next(place for place in (folder, *folder.parents) if place.is_dir())
            places = (kept, Path(tempfile.gettempdir()))
            full = min(places, key=lambda place: shutil.disk_usage(place).free)
            fix = f"; make room in {full.absolute()}"
        raise OperationError(f"stack {stack.name} can't be started: {error}{fix}") from None


def _refuse_unsafe(folder: Path, user: ServerUser | None) -> None:
    """Root writes there, so that whom servers run as must not be able to lead it elsewhere.

    Who called sudo may do as root what he wants anyway.
    """
    trusted = user is not None and user.called_sudo
    if user and not trusted and (changeable := user.may_exchange(folder.absolute())):
        raise OperationError(
            f"{folder}: {user.name}, as whom servers run, can change {changeable}; root "
            "writes its logs only where he can't: choose another folder with --output"
        )
