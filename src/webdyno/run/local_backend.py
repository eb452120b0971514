"""The machine we are on as where a run takes place: one agent on it serves and loads.

Servers are started, counters read, load is made: in the same way for this machine, a network of
its own on it, and a machine of a cluster.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from webdyno.definitions import Catalogue
from webdyno.generator.interface import Generator, LoadOrder, program
from webdyno.generator.loadgen import find_loadgen
from webdyno.host.control_group import ControlGroup, forget_groups
from webdyno.host.limits import CpuLimit
from webdyno.host.netns import open_bench
from webdyno.host.this_machine import Bench
from webdyno.host.workspace import Workspace
from webdyno.model.bench import BenchSettings
from webdyno.model.experiment import Experiment
from webdyno.model.point import PointPlan, plan_points
from webdyno.model.records import Answer
from webdyno.probe.client import ClientWatch
from webdyno.probe.cpu import server_cpu
from webdyno.probe.profile import Profiler, SystemCalls
from webdyno.probe.scene import Sampler
from webdyno.probe.slot import Course, SlotProbe
from webdyno.run.backend import (
    ClientsHost,
    ClientUse,
    CourseTracing,
    HostLost,
    LoadOutcome,
    PointTestbed,
    Questions,
    ServersHost,
    SlotUsage,
    StartedArm,
    Surroundings,
    TestbedOf,
    Tracing,
)
from webdyno.run.folder import RunFolder
from webdyno.run.planned import PlannedArm, arms_of_all_points
from webdyno.run.preflight import ask_all
from webdyno.stack.layout import Placement
from webdyno.stack.running import RunningStack
from webdyno.stack.sockets import free_port
from webdyno.stack.starting import ask_versions, start_stack

LOOK_S = 0.05
SHARE_AT_REST = 0.02
"""Share of one CPU that all servers together may use while they count as at rest."""


@dataclass(frozen=True, eq=False)
class ArmBench:
    """Where an arm runs, and what makes its load there; arms that run alike share one."""

    bench: Bench
    new_generator: Callable[[], Generator]
    """Servers and load generator are both started anew in each block."""


class Agent(ServersHost, ClientsHost):
    """Servers and load generators of a block on one host; afterwards it is ready for another."""

    def __init__(self, arms: Sequence[PlannedArm], benches: Mapping[str, ArmBench]) -> None:
        """Work for these arms, on their benches by arm."""
        self.work_for(arms, benches)
        self._stacks: dict[str, RunningStack] = {}
        self._generators: dict[ArmBench, Generator] = {}
        self._slot: _Watched | None = None
        self._sampler: Sampler | None = None
        self._sampled: list[tuple[float, float]] = []

    def work_for(self, arms: Sequence[PlannedArm], benches: Mapping[str, ArmBench]) -> None:
        """Work for other arms, when nothing of those before is up."""
        self._arms, self._benches = {arm.name: arm for arm in arms}, benches

    def ports_for(self, arm: str, roles: Sequence[str]) -> list[int]:
        """Find a free port for each of some services of an arm."""
        bench, ports = self._benches[arm].bench, list[int]()
        for _ in roles:
            ports.append(free_port(bench.servers_socket, ports, bench.host))
        return ports

    def start(self, arm: str, folder: Path, placement: Placement | None = None) -> StartedArm:
        """Start an arm's servers; with a placement only those that are to be here."""
        self.stop(arm)
        planned = self._arms[arm]
        stack = start_stack(
            planned.stack,
            planned.knobs,
            planned.site,
            folder=folder,
            bench=self._benches[arm].bench.with_server_cpus(planned.cpus),
            memory_bytes=planned.memory_bytes,
            placement=placement,
            asked=planned.first_request,
        )
        self._stacks[arm] = stack
        return StartedArm(
            url=stack.url,
            ready_s=stack.ready_s,
            cpu_s=server_cpu(stack).cpu_s,
            is_counted=stack.group is not None,
            settings=stack.settings(),
        )

    def stop(self, arm: str) -> None:
        if (stack := self._stacks.pop(arm, None)) is not None:
            stack.stop()

    def check_alive(self, arm: str) -> None:
        self._stacks[arm].check_alive()

    def waits_for_rest(self, most_s: float) -> bool:
        deadline = time.monotonic() + most_s
        while time.monotonic() < deadline:
            before_s = self._cpu_s()
            time.sleep(LOOK_S)
            if self._cpu_s() - before_s <= SHARE_AT_REST * LOOK_S:
                return True
        return False

    def slot_begins(self, arm: str, tracing: Tracing | None) -> None:
        bench = self._benches[arm]
        generator = self._generators.get(bench)
        pid = generator.pid if generator else None
        probe = SlotProbe(arm, self._stacks, bench.bench, pid)
        self._slot = _Watched(probe, tracing, bench.bench, self._stacks[arm], pid)

    def slot_ends(self) -> SlotUsage:
        slot, self._slot = self._slot, None
        if slot is None:
            raise RuntimeError("no slot has begun")
        return slot.used()

    def slot_fails(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.leave()

    def sampling_begins(self, arm: str, every_s: float) -> None:
        stack = self._stacks[arm]
        self._sampled = sampled = [(0.0, server_cpu(stack).cpu_s)]
        self._sampler = Sampler(every_s)
        self._sampler.add(lambda at_s: sampled.append((at_s, server_cpu(stack).cpu_s)))
        self._sampler.start()

    def sampling_ends(self) -> Sequence[tuple[float, float]]:
        if self._sampler is not None:
            self._sampler.stop()
        return self._sampled

    def ask(self, arm: str, url: str, questions: Questions) -> list[Answer]:
        requests, load, ignored = questions
        return ask_all(url, requests, load, self._benches[arm].bench.client_socket, ignored)

    def get_ready(self, arm: str) -> None:
        bench = self._benches[arm]
        if bench not in self._generators:
            self._generators[bench] = bench.new_generator().__enter__()

    def load(self, arm: str, order: LoadOrder) -> LoadOutcome:
        """Load an arm for one slot; watch ourselves where its servers are elsewhere."""
        bench = self._benches[arm]
        generator = self._generators[bench]
        if arm in self._stacks:
            return LoadOutcome(generator.slot(order), None)
        with ClientWatch(bench.bench.split.client, generator.pid) as watch:
            result = generator.slot(order)
        return LoadOutcome(result, ClientUse(watch.cpu, watch.waiting, watch.stopped_s, None))

    def end(self) -> None:
        """End the load generators, then all servers at once: each takes a tenth of a second."""
        stacks, generators = list(self._stacks.values()), list(self._generators.values())
        self._stacks, self._generators = {}, {}
        with ExitStack() as exits:
            for stack in stacks:
                exits.callback(stack.stop)
            for stack in stacks:
                exits.callback(stack.ask_to_stop)
            for generator in generators:
                exits.push(generator)
            exits.callback(self.sampling_ends)
            exits.callback(self.slot_fails)

    def _cpu_s(self) -> float:
        return sum(server_cpu(stack).cpu_s for stack in self._stacks.values())


class _Watched:
    """A slot while it goes on: everything that is read at its edges."""

    def __init__(
        self,
        probe: SlotProbe,
        tracing: Tracing | None,
        bench: Bench,
        stack: RunningStack,
        client_pid: int | None,
    ) -> None:
        self._server_cpus = len(bench.split.servers)
        self._probe = probe
        self._exits = ExitStack()
        cpus = (bench.split.servers, bench.split.rest)
        # Calls cost more while they are counted, which would show in samples.
        profiler = Profiler(*cpus) if tracing == "samples" else None
        calls = SystemCalls(*cpus) if tracing == "calls" else None
        course = (
            Course(stack, bench, client_pid, tracing.every_s)
            if isinstance(tracing, CourseTracing)
            else None
        )
        self._profiler, self._calls, self._course = profiler, calls, course
        with ExitStack() as exits:
            exits.enter_context(profiler or nullcontext())
            exits.enter_context(calls or nullcontext())
            exits.enter_context(probe)
            exits.enter_context(course or nullcontext())
            self._exits = exits.pop_all()

    def used(self) -> SlotUsage:
        """End, and give what was read."""
        self._exits.close()
        return SlotUsage(
            servers=self._probe.servers(),
            readings=self._probe.readings(),
            profile=self._profiler.profile if self._profiler else None,
            system_calls=self._calls.counts if self._calls else None,
            course=self._course.samples if self._course else [],
            server_cpus=self._server_cpus,
        )

    def leave(self) -> None:
        failed = RuntimeError("the slot came to no end")
        self._exits.__exit__(RuntimeError, failed, None)


class LocalBackend:
    """The machine we are on, on its loopback interface or in a network of its own."""

    def look(self, experiment: Experiment, catalogue: Catalogue) -> Surroundings:
        """Look at everything that can change a result and isn't part of the experiment."""
        arms = arms_of_all_points(experiment, catalogue)
        with open_bench(experiment.bench, find_loadgen()) as bench:
            return surroundings_on(bench, experiment, arms)

    def open(
        self,
        folder: RunFolder,  # noqa: ARG002 (what is sent to hosts elsewhere)
        exits: ExitStack,
    ) -> TestbedOf:
        """Open benches as they are asked for, until `exits` closes."""
        benches = OpenBenches(exits)

        def testbed_of(plan: PointPlan, arms: Sequence[PlannedArm]) -> PointTestbed:
            agent = Agent(arms, benches.of_arms(plan.experiment))
            return PointTestbed(agent, agent)

        return testbed_of

    def recovers(self, lost: HostLost) -> None:
        """We are the only host."""


def surroundings_on(
    bench: Bench, experiment: Experiment, arms: Sequence[PlannedArm]
) -> Surroundings:
    """Look at a bench, and ask services and load generators for their versions.

    Raises OperationError.
    """
    versions: dict[str, dict[str, str]] = {}
    for arm in arms:
        asked = ask_versions(arm.stack, arm.knobs, arm.site, bench, arm.first_request)
        versions.setdefault(arm.name, {}).update(asked)
    generators = dict.fromkeys(plan.experiment.generator for plan in plan_points(experiment))
    return Surroundings(
        machine=bench.describe(),
        versions=versions,
        load_generator="; ".join(program(name).version() for name in generators),
        hosts={},
    )


class OpenBenches:
    """Benches that are open until `exits` closes, each once."""

    def __init__(
        self, exits: ExitStack, as_host: Callable[[Bench], Bench] = lambda bench: bench
    ) -> None:
        """`as_host` makes a bench of this machine one of a host of a cluster."""
        self._exits, self._as_host = exits, as_host
        self._open: dict[tuple[BenchSettings, str], ArmBench] = {}
        self._benches: dict[BenchSettings, Bench] = {}

    def of_arms(self, experiment: Experiment) -> dict[str, ArmBench]:
        """Give where each arm runs, with what the experiment's load generator is there."""
        return {
            arm: self._arm_bench(experiment.bench_of(arm), experiment.generator)
            for arm in experiment.arms
        }

    def _arm_bench(self, settings: BenchSettings, generator: str) -> ArmBench:
        key = (settings, generator)
        if key not in self._open:
            bench = self._bench(settings)
            entry = [*self._with_cpu_time(settings), *bench.client_entry()]
            new_generator = partial(program(generator).new, bench.split.client, entry)
            self._open[key] = ArmBench(bench, new_generator)
        return self._open[key]

    def _with_cpu_time(self, settings: BenchSettings) -> list[str]:
        """Give the words before a command that let it have the client's share of CPU time."""
        if settings.client_cpus is None:
            return []
        workspace = self._exits.enter_context(Workspace())
        self._exits.callback(forget_groups, workspace.name)
        group = ControlGroup.create(workspace.name)
        limit = CpuLimit.impose(workspace.name, group, settings.client_cpus)
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', str(limit.folder / "cgroup.procs")]

    def _bench(self, settings: BenchSettings) -> Bench:
        if settings not in self._benches:
            bench = self._exits.enter_context(open_bench(settings, find_loadgen()))
            self._benches[settings] = self._as_host(bench)
        return self._benches[settings]
