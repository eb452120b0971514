"""Experiments that tell why a run came out as it did.

Arms that have less of one thing each, or other workers, tell what limits the first one; arms that
have another value of one setting each, of which it is known that it can cost much, tell what that
is worth; and a run that is measured again while the servers' CPUs are sampled tells what they do.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webdyno.definitions import Catalogue
from webdyno.definitions.validation import shown_value
from webdyno.judge.questions.interventions import SIGNS, AdviceEvidence
from webdyno.model.errors import OperationError
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.knob import FACTORS, SERVER_CPUS, Knob, KnobValue
from webdyno.model.machine import CpuSplit
from webdyno.model.measure import Measure
from webdyno.model.metrics import CPU_TIME
from webdyno.model.why import Advice, Intervention, Resource
from webdyno.stack.service_graph import resolve_stack

REMAINING, REMAINING_OF_SCARCE = 0.7, 0.8
"""The share that is left of a resource: little enough that the effect shows in two minutes, enough
that it is near the slope. The client's CPU time and memory are seldom ample, so that with any less
they would become the limit themselves."""
WORKERS = {"workers", "children", "threads", "processes"}
"""Knobs that say how many requests a service works on at a time. Half as many are tried; of one,
two."""
FEWEST_CONNECTIONS = 5
"""With fewer there is no third to take away."""
KEPT_SETTINGS = {
    *("slot_s", "warmup_s", "warmup_bursts", "lead_in_s", "slots_per_arm"),
    *("budget_s", "patience", "answer_within_s"),
}
"""Of how the run was measured, where that isn't the default: run.json says all."""
PRECISION = {"precision": 0.05, "patience": 2.0}
"""How well a ratio has to be known: 5% of the rate is 0.14 of the elasticity with 70% left, 0.22
with 80%, and what limits a server has one near 1."""


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
        yield less_of("servers' CPU", REMAINING, cpus=REMAINING * (here.cpus or len(split.servers)))
    if cpu_time_is_ours:
        cpus = bench.client_cpus or float(len(split.client))
        yield less_on_the_bench("client's CPU", REMAINING_OF_SCARCE, "client_cpus", cpus)
    if bench.link:
        yield less_on_the_bench("link", REMAINING, "link", bench.link)
    if here.memory:
        memory = round(REMAINING_OF_SCARCE * here.memory)
        yield less_of("memory", REMAINING_OF_SCARCE, memory=memory)
    connections = experiment.load_of(arm).connections
    if connections >= FEWEST_CONNECTIONS:
        fewer = round(REMAINING * connections)
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
    connections = experiment.load_of(arm).connections
    return {
        it.name: it.now
        for it in _knobs_of(arm, experiment, catalogue, split)
        if it.inner in WORKERS and not it.knob.idle(it.beside) and isinstance(it.now, int)
        if it.now // 2 < connections
    }


class _ArmsKnob(NamedTuple):
    """A knob as an arm has it."""

    name: str
    inner: str
    """What its service calls it."""
    knob: Knob
    now: KnobValue
    beside: Mapping[str, KnobValue]
    """All knobs of its service."""


def _knobs_of(
    arm: str, experiment: Experiment, catalogue: Catalogue, split: CpuSplit
) -> Iterator[_ArmsKnob]:
    stack = catalogue.stack(experiment.arms[arm].stack)
    site = catalogue.site(experiment.site_of(arm))
    roles = resolve_stack(stack, site, experiment.knobs_of(arm), len(split.servers)).roles
    resolved = {role.name: role.knobs for role in roles}
    for name, (knob, sets) in stack.with_services(site.services).exposed_knobs().items():
        role, inner = sets[0]
        yield _ArmsKnob(name, inner, knob, resolved[role][inner], resolved[role])


def limits_experiment(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    *,
    cpu_time_is_ours: bool = True,
) -> Experiment:
    """Give the experiment that tells what limits an arm of another one.

    Raise OperationError where nothing can be taken from it.
    """
    found = list(
        interventions(arm, experiment, catalogue, split, cpu_time_is_ours=cpu_time_is_ours)
    )
    if not found:
        raise OperationError(
            f"{arm}: nothing can be taken from it here. Taking CPU time takes root and control "
            "groups; a link's rate, a memory limit or the knob `workers` would have to be set in "
            "the run"
        )
    things = ", ".join(it.knob or it.resource for it, _ in found)
    changed = {f"{arm}, {_what_was_done(it, there)}": (it, there) for it, there in found}
    kept = experiment.measure.model_dump(include=KEPT_SETTINGS, exclude_defaults=True)
    return experiment.derived(
        f"What limits {arm}",
        f"What of {things} limits {arm}?",
        {arm: experiment.arms[arm]} | {name: it for name, (_, it) in changed.items()},
        Measure.model_validate(PRECISION | kept),
        interventions={name: it for name, (it, _) in changed.items()},
    )


def _what_was_done(it: Intervention, arm: Arm) -> str:
    if it.knob:
        return f"{it.knob} = {arm.knobs[it.knob]}"
    return f"{'fewer' if it.resource == 'connections' else 'less'} {it.resource}"


def advice_for(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    evidence: AdviceEvidence,
) -> list[Advice]:
    """Give the settings that may be why an arm is slow, as its knobs and a run of it have it.

    Where the run breaks a rule that one of them fixes, only those that do: no rate is valid before.
    """
    found = list(_all_of_it(arm, experiment, catalogue, split, evidence))
    return [it for it in found if it.fixes in evidence.broken] or found


def _all_of_it(
    arm: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    evidence: AdviceEvidence,
) -> Iterator[Advice]:
    sent = _headers(arm, experiment)
    for name, _, knob, now, beside in _knobs_of(arm, experiment, catalogue, split):
        if knob.cause is None or not _is_felt(knob, beside, sent):
            continue
        if knob.cause.where is not None and not SIGNS[knob.cause.where](evidence):
            continue
        for better in knob.cause.better:
            tried = _tried(better, now, knob, len(split.servers))
            if tried is not None and tried != now:
                yield Advice(
                    knob=name,
                    now=now,
                    tried=tried,
                    says=knob.cause.says,
                    vendor=knob.cause.vendor,
                    fixes=knob.cause.fixes if knob.cause.fixes in evidence.broken else None,
                )


def advice_experiment(arm: str, experiment: Experiment, advice: Sequence[Advice]) -> Experiment:
    """Give the experiment that tells what each piece of advice is worth to an arm.

    Where the arm breaks a rule that invalidates rates, it decides on the servers' CPU time; a
    search for the capacity goes by objectives, and stays one.
    """
    here = experiment.arms[arm]
    changed = {f"{arm}, {piece.knob} = {shown_value(piece.tried)}": piece for piece in advice}
    arms = {name: here.with_knobs({it.knob: it.tried}) for name, it in changed.items()}
    kept = experiment.measure.model_dump(
        include={*KEPT_SETTINGS, "decide_on"}, exclude_defaults=True
    )
    if experiment.capacity is None and any(piece.fixes for piece in advice):
        kept["decide_on"] = CPU_TIME
    return experiment.derived(
        f"What would make {arm} faster",
        f"What are other settings worth to {arm}?",
        {arm: here} | arms,
        Measure.model_validate({"patience": 2, **kept}),
        advice=changed,
    )


def _headers(arm: str, experiment: Experiment) -> set[str]:
    """Name what headers an arm's requests have, in small letters."""
    headers = [
        experiment.load_of(arm).headers,
        *(request.headers for request in experiment.requests_of(arm)),
    ]
    return {name.lower() for each in headers for name in each}


def _is_felt(knob: Knob, beside: Mapping[str, KnobValue], sent: set[str]) -> bool:
    header = knob.needs_header
    return not knob.idle(beside) and (header is None or header.lower() in sent)


def _tried(better: KnobValue, now: KnobValue, knob: Knob, cpus: int) -> KnobValue | None:
    """Give what a better value is in figures; None where it lies beyond the knob's range."""
    if better == SERVER_CPUS:
        return cpus
    if not isinstance(better, str) or better not in FACTORS or isinstance(now, str):
        return better
    found = now * FACTORS[better]
    whole = max(round(found), 1) if knob.type == "whole" else found
    return None if knob.fault(whole) else whole


def sampled_experiment(experiment: Experiment, catalogue: Catalogue) -> Experiment:
    """Give the experiment with CPU profiling on, and with symbol names where servers give them."""
    arms = {name: _with_names(name, experiment, catalogue) for name in experiment.arms}
    return experiment.replace(profile=True, arms=arms)


def _with_names(arm: str, experiment: Experiment, catalogue: Catalogue) -> Arm:
    here = experiment.arms[arm]
    stack, site = catalogue.stack(here.stack), catalogue.site(experiment.site_of(arm))
    named: dict[str, KnobValue] = {
        name: knob.when_sampled
        for name, (knob, _) in stack.with_services(site.services).exposed_knobs().items()
        if knob.when_sampled is not None
    }
    return here.with_knobs(named)
