"""Starts a stack: from its definition to a server that answers, and to its end.

What can't be started is one message, with the server's own words.
"""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import indented
from webdyno.core.setting import SettingValue
from webdyno.core.stack import Site, Stack
from webdyno.host.control_group import ControlGroup, MemoryLimit, forget_groups
from webdyno.host.netns import SharedNetwork
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser, hand_over, make_private
from webdyno.host.workspace import Workspace, copy_own, home_folder, open_folder
from webdyno.servers.layout import Deployment, lay_out, testbed_of
from webdyno.servers.prepared import FILLED, prepare_site, site_view
from webdyno.servers.ready import FirstRequest
from webdyno.servers.running import Bounds, RunningStack
from webdyno.servers.service import StackDied
from webdyno.servers.service_graph import (
    Placement,
    ResolvedStack,
    Role,
    demand_port,
    is_asked_from_elsewhere,
    on_ports,
    refuse_open_port,
    resolve_stack,
)

LINK_KEPT_FOR_S = 86_400.0


@contextmanager
def open_stack(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    *,
    folder: Path,
    testbed: Testbed,
    port: int | None = None,
    memory_bytes: int | None = None,
    placement: Placement | None = None,
    asked: FirstRequest | None = None,
) -> Iterator[RunningStack]:
    """Start a stack and wait until it answers for the site; nothing of it is left afterwards.

    `settings` are those of stack and site; `folder` keeps rendered configurations and logs; `port`
    is a free one unless given; `memory_bytes` limits all services together; with a `placement` only
    the services of this host are started; `asked` shows that a user's own system is ready. Raise
    OperationError, with the server's own words, when it can't be started.
    """
    with ExitStack() as exits:
        with _one_message(stack, folder):
            resolved = _resolved(stack, settings, site, testbed, placement)
            running = exits.enter_context(
                _laid_out(
                    *(stack, site, resolved, folder, testbed),
                    port=port,
                    memory_bytes=memory_bytes,
                    placement=placement,
                    asked=asked,
                )
            )
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
        folder, resolved = scratch.path / "kept", _resolved(stack, settings, site, testbed)
        with _laid_out(stack, site, resolved, folder, testbed, asked=asked) as laid_out:
            if stack.is_own:
                _try_out(laid_out)
            return laid_out.versions()


def _try_out(running: RunningStack) -> None:
    """Leave out the log, which nobody keeps."""
    try:
        running.start()
    except StackDied as died:
        said = f"; what it said last:\n{indented(died.log_tail)}" if died.log_tail else ""
        raise OperationError(died.what + said) from None


def _resolved(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    testbed: Testbed,
    placement: Placement | None = None,
) -> ResolvedStack:
    """Return the roles of a stack; raise UserError for what isn't started on such a testbed."""
    resolved = resolve_stack(stack, site, settings, server_cpus=len(testbed.split.servers))
    if placement is not None:
        _refuse_set_up(stack)
        resolved = replace(resolved, roles=on_ports(resolved.roles, placement))
    for role in resolved.roles:
        is_private = testbed.has_own_network or (
            placement is not None and is_asked_from_elsewhere(role, resolved.roles, placement)
        )
        refuse_open_port(role, stack, is_private=is_private)
        _refuse_elsewhere(role, testbed)
    return resolved


@contextmanager
def _laid_out(
    stack: Stack,
    site: Site,
    resolved: ResolvedStack,
    folder: Path,
    testbed: Testbed,
    *,
    port: int | None = None,
    memory_bytes: int | None = None,
    placement: Placement | None = None,
    asked: FirstRequest | None = None,
) -> Iterator[RunningStack]:
    """Make a stack ready to be started, with all that it needs; take that away at the end."""
    if port is not None:
        demand_port(port)
    for role in resolved.roles:
        _refuse_unsafe(folder, testbed_of(role.service, testbed).user)
    folder.mkdir(parents=True, exist_ok=True)
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
            asked=asked,
        )
        exits.callback(running.stop)
        yield running


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
    name = workspace.name
    with ExitStack() as exits:
        exits.callback(forget_groups, name)
        group = None if stack.runs_already else ControlGroup.create(name)
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
        fix = f"; {_make_room(folder)}" if error.errno == errno.ENOSPC else ""
        raise OperationError(f"stack {stack.name} can't be started: {error}{fix}") from None


def _make_room(folder: Path) -> str:
    """Where logs are kept, or where servers have their files."""
    kept = next(place for place in (folder, *folder.parents) if place.is_dir())
    full = min((kept, Path(tempfile.gettempdir())), key=lambda place: shutil.disk_usage(place).free)
    return f"make room in {full.absolute()}"


def _refuse_set_up(stack: Stack) -> None:
    own = stack.services[stack.front].service.own
    if own and own.setup:
        raise UserError(
            f"{own.written}: setup runs once on the host of all services, and these have several; "
            "prepare runs before each start, on the program's host"
        )


def _refuse_elsewhere(role: Role, testbed: Testbed) -> None:
    """Whatever is asked before, nothing is sent to another machine that nobody vouches for."""
    own = role.service.own
    if own and own.elsewhere and own.elsewhere not in testbed.vouched:
        raise UserError(f"{own.written}: nobody vouches for {own.elsewhere}, so it isn't loaded")


def _refuse_unsafe(folder: Path, user: ServerUser | None) -> None:
    """Root writes there, so that whom servers run as must not be able to lead it elsewhere.

    Who called sudo may do as root what he wants anyway.
    """
    trusted = user is not None and str(user.uid) == os.environ.get("SUDO_UID")
    if user and not trusted and (changeable := user.may_exchange(folder.absolute())):
        raise OperationError(
            f"{folder}: {user.name}, as whom servers run, can change {changeable}; root "
            "writes its logs only where he can't: choose another folder with --output"
        )
