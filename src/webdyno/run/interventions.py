"""Arms that have less of one thing each, or other workers, to see what limits the first one."""

from collections.abc import Iterator

from webdyno.definitions import Catalogue
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.intervention import Intervention, Resource
from webdyno.model.machine import CpuSplit
from webdyno.model.measure import Measure
from webdyno.model.mistake import Trouble
from webdyno.stack.roles import resolve_stack

LEFT, LEFT_OF_WHAT_IS_TIGHT = 0.7, 0.8
"""What is left of a thing that there is less of: little enough to be seen in two minutes, enough to
be near the slope. Of the client's CPU time and of memory there is seldom much more than is needed,
so that with less of it they would become the limit."""
WORKERS = {"workers", "children", "threads", "processes"}
"""Knobs that say how many requests a service works on at a time. Half as many are tried; of one,
two."""
FEWEST_CONNECTIONS = 5
"""Of fewer a third can't be taken."""
KEPT = {
    *("slot_s", "warmup_s", "warmup_bursts", "lead_in_s", "slots_per_arm"),
    *("budget_s", "patience", "answer_within_s"),
}
"""Of how the run was measured, where that isn't the default: run.json says all."""
ENOUGH = {"precision": 0.05, "patience": 2.0}
"""How well a ratio has to be known: 5 % of the rate is 0.14 of the elasticity with 70 % left, 0.22
with 80 %, and what limits a server has one near 1."""


def interventions(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    *,
    cpu_time_is_ours: bool = True,
) -> Iterator[tuple[Intervention, Arm]]:
    """Give what can be taken from an arm here, each with the arm as it then is.

    CPU time only where that `is_ours`: quotas take root. Fewer connections ask less often where
    answers wait for something that can't be taken: another machine, a sleep, a lock, the disk.
    """
    here, bench = experiment.arms[arm], experiment.bench_of(arm)

    def less_of(resource: Resource, share: float, **changed: object) -> tuple[Intervention, Arm]:
        return Intervention(resource=resource, share=share), here.replace(**changed)

    def less_on_the_bench(
        resource: Resource, share: float, key: str, value: float
    ) -> tuple[Intervention, Arm]:
        return less_of(resource, share, bench={**here.bench, key: share * value})

    stack = catalogue.stack(here.stack)
    if cpu_time_is_ours and not stack.runs_already and not stack.has_containers:
        yield less_of("servers' CPU", LEFT, cpus=LEFT * (here.cpus or len(split.servers)))
    if cpu_time_is_ours:
        cpus = bench.client_cpus or float(len(split.client))
        yield less_on_the_bench("client's CPU", LEFT_OF_WHAT_IS_TIGHT, "client_cpus", cpus)
    if bench.link:
        yield less_on_the_bench("link", LEFT, "link", bench.link)
    if here.memory:
        memory = round(LEFT_OF_WHAT_IS_TIGHT * here.memory)
        yield less_of("memory", LEFT_OF_WHAT_IS_TIGHT, memory=memory)
    connections = experiment.load_of(arm).connections
    if connections >= FEWEST_CONNECTIONS:
        fewer = round(LEFT * connections)
        load = {**here.load, "connections": fewer}
        yield less_of("connections", fewer / connections, load=load)
    for knob, now in _workers(arm, experiment, catalogue, split).items():
        other = max(now // 2, 1) if now > 1 else 2
        intervention = Intervention(resource="workers", share=other / now, knob=knob)
        yield intervention, here.with_knobs({knob: other})


def _workers(
    arm: str, experiment: Experiment, catalogue: Catalogue, split: CpuSplit
) -> dict[str, int]:
    """Give how many workers an arm's services have, by knob, where connections may wait for one."""
    here, connections = experiment.arms[arm], experiment.load_of(arm).connections
    stack, site = catalogue.stack(here.stack), catalogue.site(experiment.site_of(arm))
    roles = resolve_stack(stack, site, here.knobs, len(split.servers)).roles
    resolved = {role.name: role.knobs for role in roles}
    found = {}
    for name, (knob, ((role, inner), *_)) in (
        stack.with_services(site.services).exposed_knobs().items()
    ):
        now = resolved[role][inner]
        if inner not in WORKERS or knob.idle(resolved[role]) or not isinstance(now, int):
            continue
        if now // 2 < connections:
            found[name] = now
    return found


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
    things = ", ".join(it.knob or it.resource for it, _ in found)
    changed = {f"{arm}, {_what_was_done(it, there)}": (it, there) for it, there in found}
    kept = experiment.measure.model_dump(include=KEPT, exclude_defaults=True)
    return experiment.derived(
        f"What limits {arm}",
        f"What of {things} limits {arm}?",
        {arm: experiment.arms[arm]} | {name: it for name, (_, it) in changed.items()},
        Measure.model_validate(ENOUGH | kept),
        interventions={name: it for name, (it, _) in changed.items()},
    )


def _what_was_done(it: Intervention, arm: Arm) -> str:
    if it.knob:
        return f"{it.knob} = {arm.knobs[it.knob]}"
    return f"{'fewer' if it.resource == 'connections' else 'less'} {it.resource}"
