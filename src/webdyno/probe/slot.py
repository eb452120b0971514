"""All probes around one slot: `with SlotProbe(...) as probe: load()`, then `probe.readings()`."""

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from webdyno.bench import Bench
from webdyno.bench.control_group import ControlGroup
from webdyno.model.readings import Readings, ServerStatus
from webdyno.model.records import ServerUse
from webdyno.probe.client import ClientReading
from webdyno.probe.cpu import CpuReading, server_cpu, tree_cpu
from webdyno.probe.host import HostProbe
from webdyno.probe.network import NetworkReading
from webdyno.probe.processes import ServiceReading
from webdyno.probe.status import read_status
from webdyno.stack import RunningStack
from webdyno.stack.service import RunningService


class SlotProbe:
    """Reads everything before and after the load on one arm.

    What costs most is read farthest from the load. The arms that should be idle are watched too:
    work that they do now was left over from their last slot.
    """

    def __init__(
        self,
        arm: str,
        stacks: Mapping[str, RunningStack],
        bench: Bench,
        client_pid: int | None,
    ) -> None:
        """`stacks` are all arms that are up on the bench, `arm` names the one to be loaded."""
        self._stack = stacks[arm]
        self._bench = bench
        self._client_pid = client_pid
        self._others = {name: stack for name, stack in stacks.items() if name != arm}
        self._host = HostProbe(bench.split)

    def __enter__(self) -> Self:
        """Read everything a first time."""
        self._status = {
            role: status
            for role, service in self._stack.services().items()
            if (status := read_status(service))
        }
        self._services = _services(self._stack)
        self._others_cpu = {name: server_cpu(stack) for name, stack in self._others.items()}
        self._memory = self._stack.memory()
        self._network = NetworkReading.read_both(*self._bench.network_pids)
        self._client = ClientReading.read(self._client_pid)
        self._host.__enter__()
        self._cpu = server_cpu(self._stack)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Read what must be read at once."""
        self._cpu_after = server_cpu(self._stack)
        self._host.__exit__(kind, error, trace)
        self._client_after = ClientReading.read(self._client_pid)

    def servers(self) -> ServerUse:
        """CPU time of the loaded arm's servers."""
        return self._cpu_after.since(self._cpu)

    def readings(self) -> Readings:
        """Read what is left, and give it all."""
        network = NetworkReading.read_both(*self._bench.network_pids)
        after = _services(self._stack)
        host = self._host.use()
        memory = self._stack.memory()
        return Readings(
            services={role: reading.since(self._services[role]) for role, reading in after.items()},
            network=network.since(self._network, self._bench.link_bytes_per_s),
            host=host,
            status=self._status_use(),
            front=self._stack.stack.front,
            other_arms_cpu_s={
                name: server_cpu(stack).since(self._others_cpu[name]).cpu_s
                for name, stack in self._others.items()
            },
            memory=memory.since(self._memory) if memory and self._memory else None,
            shared_cpus=self._bench.split.shared,
            client_waiting=self._client_after.share_since(self._client, host.took_s),
        )

    def _status_use(self) -> dict[str, ServerStatus]:
        """Ask those services again that told their counts before the slot."""
        services = self._stack.services()
        return {
            role: after.since(before)
            for role, before in self._status.items()
            if (after := read_status(services[role]))
        }


def _services(stack: RunningStack) -> dict[str, ServiceReading]:
    return {
        role: ServiceReading.read(
            _pids(stack.group, role, service), _service_cpu(stack.group, role, service)
        )
        for role, service in stack.services().items()
    }


def _pids(group: ControlGroup | None, role: str, service: RunningService) -> list[int]:
    """Ask the control group, which knows at once; searching all of /proc takes 10 ms."""
    if group is not None:
        with suppress(OSError):
            return [int(pid) for pid in group.entry(role).read_text().split()]
    return service.pids()


def _service_cpu(group: ControlGroup | None, role: str, service: RunningService) -> CpuReading:
    if group is not None:
        with suppress(OSError):
            return CpuReading(*ControlGroup(group.path / role).cpu(), means="cgroup-v2")
    return tree_cpu([service.process.warden_pid] if service.process else [])
