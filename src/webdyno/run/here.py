"""The machine we are on as the place of a run: one agent on it serves and loads."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from webdyno.definitions import Catalogue
from webdyno.generator import find_loadgen, program
from webdyno.host import Bench, open_bench
from webdyno.host.control_group import forget_groups
from webdyno.host.cpu_limit import CpuLimit
from webdyno.model.bench import BenchSettings
from webdyno.model.experiment import Experiment
from webdyno.model.point import PointPlan, plan_points
from webdyno.run.agent import Agent, ArmBench
from webdyno.run.backend import HostLost, Roles, RolesOf, Surroundings
from webdyno.run.folder import RunFolder
from webdyno.run.planned import PlannedArm, arms_of_all_points
from webdyno.stack import ask_versions


class ThisMachine:
    """The machine we are on, on its loopback interface or in a network of its own."""

    def look(self, experiment: Experiment, catalogue: Catalogue) -> Surroundings:
        """Look at everything that can change a result and isn't part of the experiment."""
        arms = arms_of_all_points(experiment, catalogue)
        with open_bench(experiment.bench, find_loadgen()) as bench:
            return Surroundings(
                machine=bench.describe(),
                versions=versions_of(arms, bench),
                load_generator=load_generators(experiment),
                hosts={},
            )

    def open(
        self,
        folder: RunFolder,  # noqa: ARG002 (what is sent to hosts elsewhere)
        exits: ExitStack,
    ) -> RolesOf:
        """Open benches as they are asked for, until `exits` closes."""
        benches = OpenBenches(exits)

        def roles_of(plan: PointPlan, arms: Sequence[PlannedArm]) -> Roles:
            agent = Agent(arms, benches.of_arms(plan.experiment))
            return Roles(agent, agent)

        return roles_of

    def mends(self, lost: HostLost) -> None:
        """We are the only host."""


def versions_of(arms: list[PlannedArm], bench: Bench) -> dict[str, dict[str, str]]:
    """Ask the services of arms for their versions, by arm and service. Raises Trouble."""
    versions: dict[str, dict[str, str]] = {}
    for arm in arms:
        asked = ask_versions(arm.stack, arm.knobs, arm.site, bench, arm.first_request)
        versions.setdefault(arm.name, {}).update(asked)
    return versions


def load_generators(experiment: Experiment) -> str:
    """Name what makes load at any point, with versions. Raises Trouble where it is missing."""
    generators = dict.fromkeys(plan.experiment.generator for plan in plan_points(experiment))
    return "; ".join(program(name).version() for name in generators)


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
            entry = [*self._with_cpu_time(settings, bench), *bench.client_entry()]
            new_generator = partial(program(generator).new, bench.split.client, entry)
            self._open[key] = ArmBench(bench, new_generator)
        return self._open[key]

    def _with_cpu_time(self, settings: BenchSettings, bench: Bench) -> list[str]:
        """Give the words before a command that let it have the client's share of CPU time."""
        if settings.client_cpus is None:
            return []
        workspace = self._exits.enter_context(bench.workspace())
        self._exits.callback(forget_groups, workspace.name)
        group = bench.control_group(workspace)
        limit = CpuLimit.impose(workspace.name, group, settings.client_cpus)
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', str(limit.folder / "cgroup.procs")]

    def _bench(self, settings: BenchSettings) -> Bench:
        if settings not in self._benches:
            bench = self._exits.enter_context(open_bench(settings, find_loadgen()))
            self._benches[settings] = self._as_host(bench)
        return self._benches[settings]
