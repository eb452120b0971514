"""A stack that runs: its processes, and what they are known by."""

import logging
import time
from collections.abc import Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from webdyno.core.base import memory_words
from webdyno.core.paths import HEALTH
from webdyno.core.service import BAD_REQUEST, OK, SERVER_ERROR
from webdyno.core.stack import Site, Stack
from webdyno.host.contained import ContainedProcess
from webdyno.host.control_group import ControlGroup, CpuLimit, MemoryLimit, MemoryReading, trees
from webdyno.host.server_process import FoundProcess, ServerProcess
from webdyno.host.this_machine import Testbed
from webdyno.servers.prepared import FILLED, PreparedSite, preload
from webdyno.servers.ready import (
    AwaitedServer,
    FirstRequest,
    FirstResponse,
    UntrustedServer,
    asks_health,
    measured_round_trip_s,
    spoken_instead,
    wait_for_response,
    why_silent,
)
from webdyno.servers.service import RunningService, StackDied

logger = logging.getLogger(__name__)

CLOSED = (
    "what is measured has to be on this port, under this protocol; servers end connections so for "
    "hosts that they don't know (`return 444` of nginx), and where they expect the PROXY protocol"
)
UNREADABLE = "what is measured has to speak HTTP"
ENDLESS = "what is measured has to be answered as a whole; name another path by --path"
ANY_CERTIFICATE = (
    "name it as the certificate does, set SSL_CERT_FILE to a file with the authority that issued "
    "it, or take any by --set load.tls_verify=false"
)
UNREADY = "correct that, or name by --ready a path that shows when it is ready, which is waited for"


class Bounds(NamedTuple):
    """What holds all services of a stack together, as far as the machine has such."""

    name: str
    """Of the groups that containers make by themselves."""
    group: ControlGroup | None
    cpu: CpuLimit | None
    memory: MemoryLimit | None


class RunningStack:
    """The services of a stack, between `start` and `stop`."""

    def __init__(
        self,
        stack: Stack,
        site: Site,
        laid_out: Mapping[str, RunningService],
        *,
        testbed: Testbed,
        bounds: Bounds,
        prepared: PreparedSite,
        here: Set[str],
        asked: FirstRequest | None,
    ) -> None:
        """Of the services that are laid out, the roles that are `here` are started."""
        self.stack = stack
        self.site = site
        self.memory_limit = bounds.memory
        """The limit of all services together, if there is one."""
        self.group = bounds.group
        """The control group of all services, where the machine has such."""
        self.round_trip_s: float | None = None
        """To the machine that the front is on, if that is another one."""
        self.ready_s = 0.0
        """Seconds from the first service's start to the site's first response, but for those in
        which data was made."""
        self._bounds = bounds
        self._testbed = testbed
        self._prepared = prepared
        self._asked = asked
        self._roles = [service.role for service in laid_out.values()]
        self._services = {role: each for role, each in laid_out.items() if role in here}
        self._front = laid_out[stack.front]
        self._started: list[RunningService] = []
        self._name_files: set[Path] = set()
        self.port = self._front.address.port

    @property
    def name(self) -> str:
        return self._bounds.name

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
        """Make data of services behind a user's own front, filled by its `setup`, once."""
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
        if service.is_container:  # it makes groups by itself
            service.start(groups_to_remove=trees(self._bounds.name))
        else:
            own = [self.group.entry(service.role.name)] if self.group else []
            limits = filter(None, (self._bounds.cpu, self._bounds.memory))
            service.start([*own, *(entry for limit in limits for entry in limit.entries())])
        if service is not self._front or service.role.service.protocol != "http":
            service.wait_until_it_listens()

    def _start(self) -> None:
        self._fill()
        begin = time.monotonic()
        for service in self._services.values():
            self._start_service(service)
            if service.role.service.filled_with == "site-files":
                preload(service.address, self._prepared.files(), service.testbed.servers_socket)
        answered_at_s = time.monotonic()
        if self.stack.front in self._services and self._front.role.service.protocol == "http":
            answered_at_s = self._first_response().at_s
        took_s = answered_at_s - begin
        self.ready_s = took_s - sum(service.initialised_in_s for service in self._services.values())
        if self._front in self._started:
            self._front.hold_network()
        if self.is_elsewhere:
            self.round_trip_s = measured_round_trip_s(self._front.address)
        self.versions()  # kept with the logs
        self.check_alive()

    def check_alive(self) -> None:
        """Raise StackDied when a service has ended."""
        memory = self.memory()
        kills = memory.oom_kills if memory else 0
        why = f" (the memory limit was reached, OOM kills: {kills})" if kills else ""
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
        cpus = self._testbed.servers_cpu_time or len(self._testbed.split.servers)
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
        """Return the folders that its user's own programs run in."""
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
    def has_counting_groups(self) -> bool:
        """Whether control groups count its CPU time."""
        return self.group is not None or any(each.groups() for each in self.contained())

    def contained(self) -> list[ContainedProcess]:
        """Return what a daemon runs for this stack."""
        processes = [service.process for service in self._started]
        return [process for process in processes if isinstance(process, ContainedProcess)]

    @property
    def network_pid(self) -> int | None:
        """A process in the network namespace that the front has to itself; None where it hasn't."""
        process = self._front.process if self._front.is_container else None
        if isinstance(process, ContainedProcess):
            return process.network_pid
        return process.pid if isinstance(process, ServerProcess) else None

    def ask_to_stop(self) -> None:
        """Ask everything to stop, without waiting for its end: that is for `stop`."""
        self._find_name_files()
        for service in reversed(self._started):
            service.ask_to_stop()

    def stop(self) -> None:
        """Stop all services, front first; nothing of them is left afterwards."""
        self._find_name_files()
        for service in reversed(self._started):
            service.stop()
        for file in self._name_files:
            with suppress(OSError):
                file.unlink()

    def _find_name_files(self) -> None:
        """Find what processes report to `perf` of the code that they compile, and leave there.

        See perf's jit-interface.txt.
        """
        there = {file.stem.partition("-")[2]: file for file in Path("/tmp").glob("perf-*.map")}  # noqa: S108
        if there and not self.stack.runs_already:
            self._name_files |= {there[name] for pid in self.pids() if (name := str(pid)) in there}

    def _request_of_readiness(self) -> FirstRequest:
        """Of a user's own system that is what will be measured."""
        own, site, asked = self._front.role.service.own, self.site, self._asked
        if own is None and site.is_called:
            return asks_health()
        if own is None:
            return FirstRequest(site.ready_path, site.page(site.ready_path).matches)
        if own.ready:
            checks = asked is not None and asked.checks_certificate
            if own.ready == HEALTH:
                return asks_health(checks_certificate=checks)
            return FirstRequest(own.ready, _is_fine, is_patient=True, checks_certificate=checks)
        return asked or FirstRequest(site.ready_path, _is_no_failure)

    def _first_response(self) -> FirstResponse:
        """Wait for the front; raise StackDied where no response comes that can be measured."""
        front, request = self._front, self._request_of_readiness()
        own, client_entry = front.role.service.own, self._testbed.client_entry()
        is_given_time = front.role.service.ready_within_s is not None
        server = AwaitedServer(
            address=front.address,
            check_alive=self.check_alive,
            is_own=front.listens,
            is_elsewhere=front.is_elsewhere if own and not is_given_time else lambda: False,
            client_entry=client_entry,
            within_s=front.ready_within_s,
            asks_till_the_end=is_given_time,
        )
        where = f"{self.url}{request.path}"
        logger.debug("waits until %s answers %s", front.role.service.title, where)
        try:
            answered = wait_for_response(server, request)
        except UntrustedServer as untrusted:
            raise front.death(f"isn't asked for {where}: {untrusted}; {ANY_CERTIFICATE}") from None
        if answered is not None and answered.is_reset:
            return answered
        unsure = answered is None or answered.status in {None, BAD_REQUEST}
        if (
            own
            and unsure
            and (spoken := spoken_instead(front.address, request, front.listens, client_entry))
        ):
            raise front.death(
                f"speaks {spoken} on its port, and not {front.address.protocol} as load.protocol "
                f'asks for: give load.protocol = "{spoken}", or have it speak that'
            )
        if answered is None:
            late = f"has not answered {where} {front.late}"
            if front.listens() and (why := why_silent(front.address, request, client_entry)):
                late = f"{late}: {why}"
            elif front.role.service.runs_already:
                late = f"doesn't answer {where}: start it first, or give another port"
            raise front.death((front.elsewhere() if own else None) or late)
        if answered.unfinished:
            raise front.death(f"GET {where} doesn't end: {answered.unfinished}; {ENDLESS}")
        if answered.unread:
            raise front.death(
                f"answers {where} with what can't be read: {answered.unread}; {UNREADABLE}"
            )
        if answered.status is None:
            raise front.death(f"ends connections without a response to {where}: {CLOSED}")
        # Of a page that nobody named an error is as good as any other response.
        if own and not answered.is_right and request.is_right is not _is_no_failure:
            unready = f"answers {where} with status {answered.status}"
            if request.is_call:
                unready = f"answers {where}, but not that it is SERVING"
            raise front.death(unready if own.ready else f"{unready}: {UNREADY}")
        return answered


def _is_fine(status: int, body: bytes) -> bool:  # noqa: ARG001
    return OK <= status < BAD_REQUEST


def _is_no_failure(status: int, body: bytes) -> bool:  # noqa: ARG001
    return status < SERVER_ERROR
