"""A running stack: from the definition to a server that answers, and to its end."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from webdyno.host.control_group import ControlGroup, forget_groups, trees
from webdyno.host.copies import copy_own
from webdyno.host.limits import CpuLimit, MemoryLimit, MemoryReading
from webdyno.host.listening import FoundProcess
from webdyno.host.netns import SharedNetwork
from webdyno.host.server_process import ServerProcess
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser, hand_over, make_private
from webdyno.host.workspace import Workspace, home_folder, open_folder
from webdyno.model.errors import OperationError, UserError
from webdyno.model.quantities import memory_words
from webdyno.model.setting import SettingValue
from webdyno.model.stack import Site, Stack
from webdyno.stack.first_response import first_response, request_of_readiness
from webdyno.stack.layout import Deployment, Placement, lay_out, testbed_of
from webdyno.stack.open_ports import is_asked_from_elsewhere, on_ports, refuse_open_port
from webdyno.stack.prepared import FILLED, PreparedSite, preload, prepare_site, site_view
from webdyno.stack.ready import FirstRequest, FirstResponse, measured_round_trip_s
from webdyno.stack.service import RunningService, StackDied
from webdyno.stack.service_graph import Role, resolve_stack
from webdyno.stack.sockets import demand_port

LINK_KEPT_FOR_S = 86_400.0


class RunningStack:
    """The processes of a stack, and what they are known by."""

    def __init__(
        self,
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
    ) -> None:
        """Render everything; `start` starts it."""
        resolved = resolve_stack(stack, site, settings, server_cpus=len(testbed.split.servers))
        if placement is not None:
            _refuse_set_up(stack)
            resolved = replace(resolved, roles=on_ports(resolved.roles, placement))
        if port is not None:
            demand_port(port)
        for role in resolved.roles:
            is_private = testbed.has_own_network or (
                placement is not None and is_asked_from_elsewhere(role, resolved.roles, placement)
            )
            refuse_open_port(role, stack, is_private=is_private)
            _refuse_elsewhere(role, testbed)
            _refuse_unsafe(folder, testbed_of(role.service, testbed).user)
        folder.mkdir(parents=True, exist_ok=True)
        prepared = prepare_site(site, testbed)
        self._roles = resolved.roles
        self._server_cpus = len(testbed.split.servers)
        self._testbed = testbed
        self.stack = stack
        self.site = site
        self._asked = asked
        self.round_trip_s: float | None = None
        """To the machine that the front is on, if that is another one."""
        self.ready_s = 0.0
        """Seconds from the first service's start to the site's first response, but for those in
        which data was made."""
        self.group: ControlGroup | None = None
        """The control group of all services, where the machine has such."""
        self.memory_limit: MemoryLimit | None = None
        """The limit of all services together, if there is one."""
        self._cpu_limit: CpuLimit | None = None
        self._prepared: PreparedSite = prepared
        self._started: list[RunningService] = []
        self._left: list[Path] = []
        self._workspace = Workspace()
        self._network: SharedNetwork | None = None
        try:
            own = stack.services[stack.front].service.own
            if own and own.services_inside:
                self._network = SharedNetwork(testbed.split.rest)
            if not stack.runs_already:
                self.group = ControlGroup.create(self._workspace.name)
            self._cpu_limit = self._limit_cpu()
            if memory_bytes is not None:
                self.memory_limit = MemoryLimit.impose(
                    self._workspace.name, self.group, memory_bytes
                )
            state = make_private(self._workspace.path / "_state")
            copy_own(prepared.state, state)
            hand_over(state, testbed.user)
            deployment = Deployment(
                testbed=testbed,
                workspace=self._workspace,
                keep=folder,
                site=site,
                site_view=site_view(
                    site, self._found_by(prepared.folder, placement), state, resolved.site_settings
                ),
                kept_data=prepared.data() | dict(FILLED.of(resolved.roles) or {}),
                placement=placement,
                network=self._network.place if self._network else None,
            )
            self._laid_out = lay_out(resolved.roles, deployment, stack.front, port).services
        except BaseException:
            self.stop()
            raise
        self._services = {
            role: service
            for role, service in self._laid_out.items()
            if placement is None or role in placement.mine
        }
        self._front = self._laid_out[stack.front]
        self.port = self._front.address.port

    @property
    def name(self) -> str:
        return self._workspace.name

    @property
    def is_elsewhere(self) -> bool:
        """Whether its front runs on another machine, of which nothing but its answers is seen."""
        own = self._front.role.service.own
        return own is not None and own.elsewhere is not None

    @property
    def url(self) -> str:
        """Where clients find the site, such as `http://127.0.0.1:8080`."""
        address, protocol = self._front.address, self._front.role.service.protocol
        return address.url if protocol == "http" else f"{protocol}://{address.netloc}"

    def start(self) -> None:
        """Start the services one after the other and wait until the site's first response."""
        try:
            self._start()
        except StackDied as died:
            self._services[died.service].check_configuration()
            raise

    def _fill(self) -> None:
        """Have data of services behind a user's own front made, and filled by its `setup`, once."""
        behind = [service for service in self._services.values() if service is not self._front]
        keeping = [service for service in behind if service.role.service.data]
        if not self.stack.is_own or not keeping or FILLED.of(self._roles) is not None:
            return
        if self._front.filled.words("setup"):
            for service in behind:
                self._start_service(service)
            self._front.set_up()
            for service in behind:
                service.tidy()
            for service in reversed(behind):
                service.stop()
            self._started.clear()
        else:
            for service in keeping:
                service.initialise()
        FILLED.keep(self._roles, keeping)

    def _start_service(self, service: RunningService) -> None:
        self._started.append(service)
        service.start(self._groups_to_join(service), self._groups_made_by(service))
        if service is not self._front or service.role.service.protocol != "http":
            service.wait_until_it_listens()

    def _start(self) -> None:
        self._fill()
        begin = time.monotonic()
        for service in self._services.values():
            self._start_service(service)
            if service.role.service.filled_with == "site-files":
                preload(service.address, self._prepared.files(), service.testbed.servers_socket)
        answered = self._wait_for_response() if self.stack.front in self._services else None
        took_s = (answered.at_s if answered else time.monotonic()) - begin
        self.ready_s = took_s - sum(service.initialised_in_s for service in self._services.values())
        if self._front in self._started:
            self._front.hold_network()
        if self.is_elsewhere:
            self.round_trip_s = measured_round_trip_s(self._front.address)
        self.versions()  # kept with the logs
        self.check_alive()

    def _wait_for_response(self) -> FirstResponse | None:
        """Give the site's first response; None where the front speaks no HTTP."""
        front = self._front
        if front.role.service.protocol != "http":
            return None
        request = request_of_readiness(front.role.service.own, self.site, self._asked)
        return first_response(front, request, self.url, self._testbed, self.check_alive)

    def check_alive(self) -> None:
        """Raise StackDied when a service has ended."""
        why = self._killed_for_memory()
        for service in self._started:
            service.check_alive(why)

    def services(self) -> Mapping[str, RunningService]:
        return self._services

    def versions(self) -> dict[str, str]:
        return {role: service.version() for role, service in self._services.items()}

    def facts(self) -> dict[str, str]:
        """What the pre-flight check says of the services; those behind the front by role."""
        limit = self.memory_limit
        size = (
            f"{memory_words(limit.reading().limit_bytes)}, kept by {limit.means}" if limit else ""
        )
        cpus = self._testbed.servers_cpu_time or self._server_cpus
        common = {"server CPUs": f"{cpus:g}", "memory limit": size or "none"}
        if self.stack.runs_already:
            common = {"server CPUs": "as it was started", "memory limit": "as it was started"}
        if self.round_trip_s is not None:
            common["machine"] = f"another one, {self._front.address.host}"
        return common | {
            name if service is self._front else f"{role}: {name}": value
            for role, service in self._services.items()
            for name, value in service.facts().items()
        }

    def own_folders(self) -> list[str]:
        """Give the folders that its user's own programs run in."""
        owns = (service.role.service.own for service in self._services.values())
        return [own.folder for own in owns if own and own.folder]

    def pids(self) -> list[int]:
        return [pid for service in self._started for pid in service.pids()]

    def memory(self) -> MemoryReading | None:
        return self.memory_limit.reading() if self.memory_limit else None

    def wardens(self) -> list[int]:
        """The processes whose descendants the services are; no part of the stack themselves."""
        processes = [service.process for service in self._started]
        return [process.warden_pid for process in processes if isinstance(process, ServerProcess)]

    def found_pids(self) -> list[int]:
        """Processes that ran before; with their descendants they are services of this stack."""
        processes = [service.process for service in self._started]
        return [
            pid
            for process in processes
            if isinstance(process, FoundProcess)
            for pid in process.roots()
        ]

    @property
    def network_pid(self) -> int | None:
        """A process in the network namespace that the front has to itself; None where it hasn't."""
        process = self._front.process if self._front.is_container else None
        return process.pid if isinstance(process, ServerProcess) else None

    def ask_to_stop(self) -> None:
        """Have everything stop, without waiting for its end: that is for `stop`."""
        self._left += self._name_files()
        for service in reversed(self._started):
            service.ask_to_stop()

    def stop(self) -> None:
        """Stop everything, front first; nothing is left afterwards; safe to call twice."""
        self._left += self._name_files()
        for service in reversed(self._started):
            service.stop()
        if self._network is not None:
            self._network.close()
        if self.group is not None:
            self.group.end()
        forget_groups(self._workspace.name)
        self._workspace.remove()
        self._prepared.release()
        for file in self._left:
            with suppress(OSError):
                file.unlink()

    def _found_by(self, files: Path, placement: Placement | None) -> Path:
        """Give the path by which the services find the site's files.

        A server names a file to another one on its host, where it must have the same path.
        """
        if placement is None:
            return files
        links = open_folder(home_folder() / "spread")
        for old in links.iterdir():  # of agents that were killed
            if time.time() - old.lstat().st_mtime > LINK_KEPT_FOR_S:
                old.unlink(missing_ok=True)
        link = links / placement.name
        with suppress(FileExistsError):  # of another host that is this machine as well
            link.symlink_to(files)
        self._left.append(link)
        return link

    def _name_files(self) -> list[Path]:
        """Find what its processes have told `perf` of the code that they compile while they run.

        They write it where `perf` looks for it, and leave it there (perf's jit-interface.txt).
        """
        there = {file.stem.partition("-")[2]: file for file in Path("/tmp").glob("perf-*.map")}  # noqa: S108
        if not there or self.stack.runs_already:
            return []
        return [there[name] for pid in self.pids() if (name := str(pid)) in there]

    def _limit_cpu(self) -> CpuLimit | None:
        theirs = self.stack.has_containers or self.stack.runs_already
        if theirs and self._testbed.servers_cpu_time is not None:
            raise OperationError(
                f"{self.stack.name}: a share of a CPU can't be kept for containers, nor for what "
                "runs already; give whole CPUs"
            )
        return self._testbed.cpu_limit(self._workspace, self.group)

    def _killed_for_memory(self) -> str:
        memory = self.memory()
        kills = memory.oom_kills if memory else 0
        return f" (the memory limit was reached, OOM kills: {kills})" if kills else ""

    def _groups_to_join(self, service: RunningService) -> list[Path]:
        if service.is_container:
            return []
        own = [self.group.entry(service.role.name)] if self.group else []
        limits = [limit for limit in (self._cpu_limit, self.memory_limit) if limit is not None]
        return own + [entry for limit in limits for entry in limit.entries()]

    def _groups_made_by(self, service: RunningService) -> list[Path]:
        return trees(self._workspace.name) if service.is_container else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


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
