"""Arms that have less of one thing each, to see what limits the one that has all of it."""

from collections.abc import Iterator

from webdyno.definitions import Catalogue
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.intervention import Intervention, Resource
from webdyno.model.machine import CpuSplit
from webdyno.model.measure import Measure
from webdyno.model.mistake import Trouble

LEFT = 0.8
"""What is left of a thing that there is less of: enough to be seen, little enough to be near the
slope."""
FEWER_WORKERS = 0.5
WORKERS = "workers"
KEPT = {"slot_s", "warmup_s", "lead_in_s", "slots_per_arm", "budget_s", "patience", "precision"}
"""Of how the run was measured, where it was said."""


def interventions(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    *,
    cpu_time_is_ours: bool = True,
) -> Iterator[tuple[Intervention, Arm]]:
    """Give what can be taken from an arm here, each with the arm as it then is.

    CPU time only where that `is_ours`: quotas take root.
    """
    here, bench = experiment.arms[arm], experiment.bench_of(arm)

    def less_of(resource: Resource, share: float, **changed: object) -> tuple[Intervention, Arm]:
        return Intervention(resource=resource, share=share), here.model_copy(update=changed)

    def less_on_the_bench(resource: Resource, key: str, value: float) -> tuple[Intervention, Arm]:
        return less_of(resource, LEFT, bench={**here.bench, key: LEFT * value})

    stack = catalogue.stack(here.stack)
    if cpu_time_is_ours and not stack.runs_already and not stack.has_containers:
        yield less_of("servers' CPU", LEFT, cpus=LEFT * (here.cpus or len(split.servers)))
    if cpu_time_is_ours:
        yield less_on_the_bench(
            "client's CPU", "client_cpus", bench.client_cpus or float(len(split.client))
        )
    if bench.link:
        yield less_on_the_bench("link", "link", bench.link)
    if here.memory:
        yield less_of("memory", LEFT, memory=round(LEFT * here.memory))
    workers = here.knobs.get(WORKERS)
    if isinstance(workers, int) and not isinstance(workers, bool) and workers > 1:
        fewer = max(round(workers * FEWER_WORKERS), 1)
        yield less_of("workers", fewer / workers, knobs={**here.knobs, WORKERS: fewer})


def asked_why(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    *,
    cpu_time_is_ours: bool = True,
) -> Experiment:
    """Give the experiment that tells what limits an arm of another one.

    Raise Trouble where nothing can be taken from it.
    """
    found = list(
        interventions(arm, experiment, catalogue, split, cpu_time_is_ours=cpu_time_is_ours)
    )
    if not found:
        raise Trouble(
            f"{arm}: nothing can be taken from it here. Taking CPU time takes root and control "
            "groups; a link's rate, a memory limit or the knob `workers` would have to be set in "
            "the run"
        )
    less = {f"{arm}, less {it.resource}": (it, changed) for it, changed in found}
    kept = experiment.measure.model_dump(include=KEPT, exclude_unset=True)
    return experiment.model_copy(
        update={
            "title": f"What limits {arm}",
            "question": f"What of {', '.join(it.resource for it, _ in found)} limits {arm}?",
            "arms": {arm: experiment.arms[arm]} | {name: it for name, (_, it) in less.items()},
            "interventions": {name: it for name, (it, _) in less.items()},
            "measure": Measure.model_validate(kept),
            "race": None,
            "gate": None,
            "factors": {},
            "tuning": [],
        }
    )
