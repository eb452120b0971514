"""A task of a league: a site under a load, and the experiment that ranks stacks at it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from webdyno.config import Catalogue, CommandLine, Override, time_limit, variant_of
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.metrics import CPU_TIME
from webdyno.core.question import RANKING
from webdyno.launch.arrangement import Arrangement, AskedSystems, arrange
from webdyno.launch.caller import Caller

FULL, AT_RATE = "full", "rate"
LOADS = (FULL, AT_RATE)
SITES = ("plaintext", "json", "fortunes", "queries", "updates", "upload")
"""What a league is about unless somebody says otherwise."""
SHORT_DIGEST = 6
MEASURE, VARIANTS = "measure", "variants"
WARMUP, BURSTS = "warmup_s", "warmup_bursts"


class Task(NamedTuple):
    """A site under a load."""

    site: str
    rate_rps: float | None = None
    """The arrival rate, which all have in common; None: a closed loop at full speed."""

    @property
    def name(self) -> str:
        return f"{self.site}-{FULL if self.rate_rps is None else f'{self.rate_rps:g}rps'}"

    @property
    def words(self) -> str:
        """What it is, for people: `fortunes at full speed`, `fortunes at 200 req/s`."""
        load = "full speed" if self.rate_rps is None else f"{self.rate_rps:,g} req/s"
        return f"{self.site} at {load}"


def task_of(experiment: Experiment) -> Task:
    """Return the task that a run of a league is about."""
    return Task(experiment.site, experiment.load.rate_per_s)


def key_of(experiment: Experiment) -> str:
    """Return what distinguishes loads: runs with the same key measured the same."""
    asked = experiment.model_dump_json(include={"site", "load", "requests", "testbed", "generator"})
    return f"{task_of(experiment).name}-{sha256(asked.encode()).hexdigest()[:SHORT_DIGEST]}"


class Asking(NamedTuple):
    """By whom, and with what, the experiments of a league are made."""

    catalogue: Catalogue
    caller: Caller
    overrides: Sequence[Override] = ()

    def arrange(
        self,
        task: Task,
        stacks: Sequence[str],
        together: int = 1,
        *,
        time_s: float | None = None,
        cold: Collection[str] = (),
        warmup_s: float | None = None,
    ) -> Arrangement:
        """Return the ranking of some stacks at a task; within a time, where one is given.

        What is set of other stacks doesn't count. `warmup_s`: of those that were `cold`, unless
        the user set one; by default their pilots find it. Warm-ups of a stack's own come in bursts,
        which leave compilers CPU time: after 20 s of load without a break Spring Boot served 20,000
        requests/s on one CPU and got faster still, after as long in bursts 42,000.
        """
        overrides = [
            each
            for each in self.overrides
            if variant_of(each, self.catalogue.stacks) in {None, *stacks}
        ]
        for stack in stacks:
            overrides += self._warmup_of(stack, warmup_s if stack in cold else None)
        if task.rate_rps is not None:
            flag = f"--rate {task.rate_rps:g}"
            overrides += [
                Override(("load", "loop"), "open", flag),
                Override(("load", "rate_per_s"), task.rate_rps, flag),
                Override(("measure", "decide_on"), CPU_TIME, flag),
            ]
        if time_s is not None:
            overrides += time_limit(time_s, "--time")
        ranking = CommandLine({RANKING: {"together": together}}, {(RANKING,): "league"})
        asked = AskedSystems(site=task.site, overrides=overrides)
        made = arrange(stacks, asked, self.catalogue, self.caller, ranking)
        return made._replace(name=task.name)

    def check(self, tasks: Mapping[Task, Sequence[str]]) -> None:
        """Raise UserError for what is set of a stack that no task has, or can't be set of it."""
        able = {stack for stacks in tasks.values() for stack in stacks}
        for override in self.overrides:
            stack = variant_of(override, self.catalogue.stacks)
            if stack is not None and stack not in able:
                raise UserError(f"{override.flag}: {stack} is none of this league's stacks")
        for task, stacks in tasks.items():
            self.arrange(task, stacks)

    def _warmup_of(self, stack: str, warmup_s: float | None) -> Iterator[Override]:
        """Yield what makes a stack's own warm-up that long, and any own one come in bursts."""
        given = {each.sets for each in self.overrides}
        own, in_bursts = ((VARIANTS, stack, key) for key in (WARMUP, BURSTS))
        is_given = own in given
        if warmup_s is not None and not is_given and (MEASURE, WARMUP) not in given:
            yield Override(own, round(warmup_s, 2), "league")
            is_given = True
        if is_given and not {in_bursts, (MEASURE, BURSTS)} & given:
            yield Override(in_bursts, "on", "league")
