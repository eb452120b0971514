"""The machine we are on as where a run takes place: one agent on it serves and loads.

Servers are started, counters read, load is made: in the same way for this machine, a network of
its own on it, and a machine of a cluster.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.records import Response
from webdyno.core.sweep import PointPlan, plan_points
from webdyno.core.testbed import TestbedSettings
from webdyno.host.control_group import ControlGroup, CpuLimit, forget_groups
from webdyno.host.netns import open_testbed
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.load.engine import find_loadgen
from webdyno.load.interface import Generator, LoadOrder, program
from webdyno.measure.backend import (
    ClientsHost,
    ClientUse,
    CourseTracing,
    HostLost,
    LoadOutcome,
    PointTestbed,
    Questions,
    ServersHost,
    SlotUsage,
    StartedVariant,
    Surroundings,
    TestbedOf,
    Tracing,
)
from webdyno.measure.folder import RunFolder
from webdyno.measure.planned import PlannedVariant, variants_of_all_points
from webdyno.measure.preflight import ask_all, ask_as_user
from webdyno.measure.site_rules import broken_rule
from webdyno.probes.cpu import ClientWatch, server_cpu
from webdyno.probes.instructions import InstructionCounter, check_counted
from webdyno.probes.profile import Profiler, SystemCalls
from webdyno.probes.scene import Sampler
from webdyno.probes.slot import Course, SlotProbe, all_pids
from webdyno.servers.running import RunningStack
from webdyno.servers.service_graph import Placement, free_port
from webdyno.servers.starting import ask_versions, open_stack

LOOK_S = 0.05
SHARE_AT_REST = 0.02
"""Share of one CPU that all servers together may use while they count as at rest."""


@dataclass(frozen=True, eq=False)
class VariantTestbed:
    """Where a variant runs, and what makes its load there; variants that run alike share one."""

    testbed: Testbed
    new_generator: Callable[[], Generator]
    """Servers and load generator are both started again in each round."""


class Agent(ServersHost, ClientsHost):
    """Servers and load generators of a round on one host; afterwards it is ready for another."""

    def __init__(
        self, variants: Sequence[PlannedVariant], testbeds: Mapping[str, VariantTestbed]
    ) -> None:
        """Work for these variants, on their testbeds by variant."""
        self.work_for(variants, testbeds)
        self._stacks: dict[str, RunningStack] = {}
        self._stack_exits: dict[str, ExitStack] = {}
        self._generators: dict[VariantTestbed, Generator] = {}
        self._slot: _SlotWatch | None = None
        self._sampler: Sampler | None = None
        self._sampled: list[tuple[float, float]] = []

    def work_for(
        self, variants: Sequence[PlannedVariant], testbeds: Mapping[str, VariantTestbed]
    ) -> None:
        """Work for other variants, when nothing of those before is up."""
        self._variants, self._testbeds = {variant.name: variant for variant in variants}, testbeds

    def ports_for(self, variant: str, roles: Sequence[str]) -> list[int]:
        """Find a free port for each of some services of a variant."""
        testbed, ports = self._testbeds[variant].testbed, list[int]()
        for _ in roles:
            ports.append(free_port(testbed.servers_socket, ports, testbed.host))
        return ports

    def start(
        self, variant: str, folder: Path, placement: Placement | None = None
    ) -> StartedVariant:
        """Start a variant's servers; with a placement only those that are to be here."""
        self.stop(variant)
        planned = self._variants[variant]
        exits = ExitStack()
        stack = exits.enter_context(
            open_stack(
                planned.stack,
                planned.settings,
                planned.site,
                folder=folder,
                testbed=self._testbeds[variant].testbed.with_server_cpus(planned.cpus),
                memory_bytes=planned.memory_bytes,
                placement=placement,
                asked=planned.first_request,
            )
        )
        self._stacks[variant], self._stack_exits[variant] = stack, exits
        if planned.resets:
            for service in stack.services().values():
                service.take_snapshot()
        return StartedVariant(
            url=stack.url,
            ready_s=stack.ready_s,
            cpu_s=server_cpu(stack).cpu_s,
            is_counted=stack.has_counting_groups,
            facts=stack.facts(),
            round_trip_s=stack.round_trip_s,
        )

    def stop(self, variant: str) -> None:
        self._stacks.pop(variant, None)
        self._stack_exits.pop(variant, ExitStack()).close()

    def broken_rule(self, variant: str) -> str | None:
        planned, testbed = self._variants[variant], self._testbeds[variant].testbed
        stack = self._stacks[variant]
        return broken_rule(stack, planned.site, planned.load, testbed.client_entry())

    def check_alive(self, variant: str) -> None:
        self._stacks[variant].check_alive()

    def waits_for_rest(self, most_s: float) -> bool:
        deadline = time.monotonic() + most_s
        while time.monotonic() < deadline:
            before_s = self._cpu_s()
            time.sleep(LOOK_S)
            if self._cpu_s() - before_s <= SHARE_AT_REST * LOOK_S:
                return True
        return False

    def put_back(self, variant: str) -> None:
        if self._variants[variant].resets:
            for service in self._stacks[variant].services().values():
                service.restore()

    def slot_begins(self, variant: str, tracing: Tracing | None) -> None:
        testbed = self._testbeds[variant]
        generator = self._generators.get(testbed)
        pid = generator.pid if generator else None
        sees_blocked = tracing == "blocked"
        probe = SlotProbe(variant, self._stacks, testbed.testbed, pid, sees_blocked=sees_blocked)
        self._slot = _SlotWatch(probe, tracing, testbed.testbed, self._stacks[variant], pid)

    def slot_ends(self) -> SlotUsage:
        slot, self._slot = self._slot, None
        if slot is None:
            raise RuntimeError("no slot has begun")
        return slot.end()

    def slot_fails(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.leave()

    def sampling_begins(self, variant: str, every_s: float) -> None:
        stack = self._stacks[variant]
        self._sampled = sampled = [(0.0, server_cpu(stack).cpu_s)]
        self._sampler = Sampler(every_s)
        self._sampler.add(lambda at_s: sampled.append((at_s, server_cpu(stack).cpu_s)))
        self._sampler.start()

    def sampling_ends(self) -> Sequence[tuple[float, float]]:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.stop()
        return self._sampled

    def ask(self, variant: str, url: str, questions: Questions) -> list[Response]:
        requests, load, ignored, users, allow_remote = questions
        if users is not None:
            self.get_ready(variant)
            generator = self._generators[self._testbeds[variant]]
            return ask_as_user(
                url, requests, load, users, generator, ignored, allow_remote=allow_remote
            )
        entry = self._testbeds[variant].testbed.client_entry()
        return ask_all(url, requests, load, entry, ignored)

    def get_ready(self, variant: str) -> None:
        testbed = self._testbeds[variant]
        if testbed not in self._generators:
            self._generators[testbed] = testbed.new_generator().__enter__()

    def log_in(self, variant: str, order: LoadOrder) -> None:
        self._generators[self._testbeds[variant]].log_in(order)

    def load(self, variant: str, order: LoadOrder) -> LoadOutcome:
        """Load a variant for one slot; watch ourselves where its servers are elsewhere."""
        testbed = self._testbeds[variant]
        generator = self._generators[testbed]
        if variant in self._stacks:
            return LoadOutcome(generator.slot(order), None)
        with ClientWatch(testbed.testbed.split.client, generator.pid) as watch:
            result = generator.slot(order)
        return LoadOutcome(result, ClientUse(watch.cpu, watch.waiting, watch.stopped_s, None))

    def end(self) -> None:
        """End the load generators, then all servers at once: each takes a tenth of a second."""
        stacks, generators = list(self._stacks.values()), list(self._generators.values())
        stack_exits = list(self._stack_exits.values())
        self._stacks, self._stack_exits, self._generators = {}, {}, {}
        with ExitStack() as exits:
            for opened in stack_exits:
                exits.callback(opened.close)
            for stack in stacks:
                exits.callback(stack.ask_to_stop)
            for generator in generators:
                exits.push(generator)
            exits.callback(self.sampling_ends)
            exits.callback(self.slot_fails)

    def _cpu_s(self) -> float:
        return sum(server_cpu(stack).cpu_s for stack in self._stacks.values())


class _SlotWatch:
    """A slot while it goes on: everything that is read at its edges."""

    def __init__(
        self,
        probe: SlotProbe,
        tracing: Tracing | None,
        testbed: Testbed,
        stack: RunningStack,
        client_pid: int | None,
    ) -> None:
        self._server_cpus = len(testbed.split.servers)
        self._probe, self._stack = probe, stack
        self._profiler: Profiler | None = None
        self._calls: SystemCalls | None = None
        self._counter: InstructionCounter | None = None
        self._course: Course | None = None
        with ExitStack() as exits:
            cpus = (testbed.split.servers, testbed.split.rest)
            # Calls cost more while they are counted, which would show in samples.
            if tracing == "samples":
                self._profiler = exits.enter_context(Profiler(*cpus, stack.own_folders()))
            elif tracing == "calls":
                self._calls = exits.enter_context(SystemCalls(*cpus))
            elif tracing == "instructions":
                counter = InstructionCounter(partial(all_pids, stack))
                self._counter = exits.enter_context(counter)
            exits.enter_context(probe)
            if isinstance(tracing, CourseTracing):
                course = Course(stack, testbed, client_pid, tracing.every_s)
                self._course = exits.enter_context(course)
            self._exits = exits.pop_all()
        self._note_processes()

    def _note_processes(self) -> None:
        """Note whose samples are the servers': some processes end before a slot does."""
        if self._profiler is not None:
            self._profiler.pids.update(self._stack.pids())

    def end(self) -> SlotUsage:
        """End, and give what was read."""
        self._note_processes()
        self._exits.close()
        return SlotUsage(
            servers=self._probe.servers(),
            readings=self._probe.readings(),
            profile=self._profiler.profile if self._profiler else None,
            system_calls=self._calls.counts if self._calls else None,
            instructions=self._counter.counted if self._counter else None,
            course=self._course.samples if self._course else [],
            server_cpus=self._server_cpus,
        )

    def leave(self) -> None:
        failed = RuntimeError("the slot came to no end")
        self._exits.__exit__(RuntimeError, failed, None)


class LocalBackend:
    """The machine we are on, on its loopback interface or in a network of its own."""

    def __init__(self, vouched: frozenset[str] = frozenset()) -> None:
        """`vouched` are addresses on other machines that may be loaded from here."""
        self._vouched = vouched

    def look(self, experiment: Experiment, catalogue: Catalogue) -> Surroundings:
        """Look at everything that can change a result and isn't part of the experiment."""
        variants = variants_of_all_points(experiment, catalogue)
        with open_testbed(experiment.testbed, find_loadgen()) as testbed:
            here = testbed.vouching_for(self._vouched)
            return surroundings_on(here, experiment, variants)

    def open(
        self,
        folder: RunFolder,  # noqa: ARG002 (what is sent to hosts elsewhere)
        exits: ExitStack,
    ) -> TestbedOf:
        """Open testbeds as they are asked for, until `exits` closes."""
        testbeds = OpenTestbeds(exits, vouched=self._vouched)

        def testbed_of(plan: PointPlan, variants: Sequence[PlannedVariant]) -> PointTestbed:
            agent = Agent(variants, testbeds.of_variants(plan.experiment))
            return PointTestbed(agent, agent)

        return testbed_of

    def recovers(self, lost: HostLost) -> None:
        """We are the only host."""


def surroundings_on(
    testbed: Testbed, experiment: Experiment, variants: Sequence[PlannedVariant]
) -> Surroundings:
    """Look at a testbed, and ask services and load generators for their versions.

    Raises OperationError, and UserError where instructions can't be counted.
    """
    if any(plan.experiment.counts_instructions for plan in plan_points(experiment)):
        check_counted()
    versions: dict[str, dict[str, str]] = {}
    for variant in variants:
        asked = ask_versions(
            variant.stack, variant.settings, variant.site, testbed, variant.first_request
        )
        versions.setdefault(variant.name, {}).update(asked)
    generators = dict.fromkeys(plan.experiment.generator for plan in plan_points(experiment))
    return Surroundings(
        machine=testbed.describe(),
        versions=versions,
        load_generator="; ".join(program(name).version() for name in generators),
        hosts={},
    )


class OpenTestbeds:
    """Testbeds that are open until `exits` closes, each once."""

    def __init__(
        self,
        exits: ExitStack,
        as_host: Callable[[Testbed], Testbed] = lambda testbed: testbed,
        vouched: frozenset[str] = frozenset(),
    ) -> None:
        """`as_host` makes a testbed of this machine one of a host of a cluster.

        `vouched` are addresses on other machines that may be loaded.
        """
        self._exits, self._as_host, self._vouched = exits, as_host, vouched
        self._open: dict[tuple[TestbedSettings, str], VariantTestbed] = {}
        self._testbeds: dict[TestbedSettings, Testbed] = {}

    def of_variants(self, experiment: Experiment) -> dict[str, VariantTestbed]:
        """Return where each variant runs, with what the experiment's load generator is there."""
        return {
            variant: self._variant_testbed(experiment.testbed_of(variant), experiment.generator)
            for variant in experiment.variants
        }

    def _variant_testbed(self, settings: TestbedSettings, generator: str) -> VariantTestbed:
        key = (settings, generator)
        if key not in self._open:
            testbed = self._open_testbed(settings)
            entry = [*self._with_cpu_time(settings), *testbed.client_entry()]
            new_generator = partial(program(generator).new, testbed.split.client, entry)
            self._open[key] = VariantTestbed(testbed, new_generator)
        return self._open[key]

    def _with_cpu_time(self, settings: TestbedSettings) -> list[str]:
        """Return the words before a command that let it have the client's share of CPU time."""
        if settings.client_cpus is None:
            return []
        workspace = self._exits.enter_context(Workspace())
        self._exits.callback(forget_groups, workspace.name)
        group = ControlGroup.create(workspace.name)
        limit = CpuLimit.impose(workspace.name, group, settings.client_cpus)
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', str(limit.folder / "cgroup.procs")]

    def _open_testbed(self, settings: TestbedSettings) -> Testbed:
        if settings not in self._testbeds:
            testbed = self._exits.enter_context(open_testbed(settings, find_loadgen()))
            self._testbeds[settings] = self._as_host(testbed.vouching_for(self._vouched))
        return self._testbeds[settings]
