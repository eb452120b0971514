"""All probes around one slot: `with SlotProbe(...) as probe: load()`, then `probe.readings()`.

A probe is a function in a file of its own, which `PROBES` names; `scene.py` says what it may do.
"""

from collections.abc import Generator, Mapping
from types import TracebackType
from typing import Any, Self

from webdyno.host import Bench
from webdyno.model.readings import Readings
from webdyno.model.records import ServerUse
from webdyno.probe import client, host, network, processes, status
from webdyno.probe.cpu import idle_arms_cpu, server_cpu
from webdyno.probe.host import interrupts_kept_apart
from webdyno.probe.scene import Part, Probe, Scene
from webdyno.stack import RunningStack

PROBES: dict[str, Probe] = {
    "status": status.probe,
    "other_arms_cpu_s": idle_arms_cpu,
    "memory": processes.memory_limit,
    "services": processes.probe,
    "network": network.probe,
    "stopped": processes.stopped,
    "client_waiting": client.probe,
    "host": host.probe,
}
"""By the name of their part of the readings. What costs most is read farthest from the load: in
this order before the slot, in the opposite one after it."""


class SlotProbe:
    """Reads everything before and after the load on one arm."""

    def __init__(
        self, arm: str, stacks: Mapping[str, RunningStack], bench: Bench, client_pid: int | None
    ) -> None:
        """`stacks` are all arms that are up on the bench, `arm` names the one to be loaded."""
        others = {name: stack for name, stack in stacks.items() if name != arm}
        self._scene = Scene(stacks[arm], others, bench, client_pid)
        self._interrupts_apart = interrupts_kept_apart()
        self._running: dict[str, Generator[None, None, Part]] = {}
        self._parts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Read everything a first time."""
        for name, probe in PROBES.items():
            self._running[name] = probe(self._scene)
            next(self._running[name])
        self._scene.sampler.start()
        self._cpu = server_cpu(self._scene.stack)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Read everything again, unless the slot failed."""
        if kind is None:
            self._used = server_cpu(self._scene.stack).since(self._cpu)
        self._scene.sampler.stop()
        for name, running in reversed(self._running.items()):
            if kind is None:
                self._parts[name] = _end(running)
            running.close()

    def servers(self) -> ServerUse:
        """CPU time of the loaded arm's servers."""
        if not self._interrupts_apart:
            return self._used
        interrupts_s = self._parts["host"].servers.interrupts_s
        return self._used.replace(interrupts_s=interrupts_s)

    def readings(self) -> Readings:
        """Everything else."""
        return Readings.model_validate(
            {
                **{name: part for name, part in self._parts.items() if part is not None},
                "front": self._scene.stack.stack.front,
                "shared_cpus": self._scene.bench.split.shared,
            }
        )


def _end(running: Generator[None, None, Part]) -> Any:  # noqa: ANN401 (the readings check it)
    """Let a probe read the second time, and give what it tells."""
    try:
        next(running)
    except StopIteration as ended:
        return ended.value
    raise RuntimeError("a probe yields once")
