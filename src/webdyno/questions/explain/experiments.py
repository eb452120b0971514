"""Experiments that say why a run came out as it did.

Variants that have less of one thing each, or other workers, say what limits the first one;
variants that have another value of one setting each, of which it is known that it can cost much,
say what that is worth.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webdyno.config import Catalogue
from webdyno.config.reading import shown_value
from webdyno.core.errors import OperationError
from webdyno.core.experiment import Experiment
from webdyno.core.findings import Advice, Resource
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME
from webdyno.core.setting import FACTORS, FOLLOWING_CPUS, Setting, SettingValue, in_figures
from webdyno.core.testbed import CpuSplit
from webdyno.core.variant import Variant
from webdyno.questions.explain.decide import SIGNS, AdviceEvidence
from webdyno.questions.explain.settings import AdviceSettings, Intervention, LimitsSettings
from webdyno.servers.service_graph import resolve_stack

REMAINING, REMAINING_OF_SCARCE = 0.7, 0.8
"""The share that is left of a resource: little enough that the effect shows in two minutes, enough
that it is near the slope. The client's CPU time and memory are seldom ample, so that with any less
they would become the limit themselves."""
WORKERS = {"workers", "children", "threads", "processes"}
"""Settings that say how many requests a service works on at a time. Half as many are tried; of one,
two."""
FEWEST_CONNECTIONS = 5
"""With fewer there is no third to take away."""
KEPT_SETTINGS = {
    *("slot_s", "warmup_s", "warmup_bursts", "ramp_up_s", "slots_per_variant"),
    *("budget_s", "budget_is_limit", "patience", "answer_within_s"),
}
"""Of how the run was measured, where that isn't the default: run.json says all."""
PRECISION = {"precision": 0.05, "patience": 2.0}
"""How well a ratio has to be known: 5% of the throughput is 0.14 of the elasticity with 70% left,
0.22 with 80%, and what limits a server has one near 1."""


def interventions(
    variant: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    *,
    cpu_time_is_ours: bool = True,
) -> Iterator[tuple[Intervention, Variant]]:
    """Yield what can be taken from a variant here, each with the variant as it then is.

    CPU time only where that `is_ours`: quotas take root. Fewer connections ask less often where
    answers wait for something that can't be taken: another machine, a sleep, a lock, the disk.
    """
    here, testbed = experiment.variants[variant], experiment.testbed_of(variant)

    def less_of(
        resource: Resource, share: float, **changed: object
    ) -> tuple[Intervention, Variant]:
        return Intervention(resource=resource, share=share), here.replace(**changed)

    def less_on_the_testbed(
        resource: Resource, share: float, key: str, value: float
    ) -> tuple[Intervention, Variant]:
        return less_of(resource, share, testbed={**here.testbed, key: share * value})

    stack = catalogue.stack(here.stack)
    if cpu_time_is_ours and not stack.runs_already and not stack.has_containers:
        yield less_of("servers' CPU", REMAINING, cpus=REMAINING * (here.cpus or len(split.servers)))
    if cpu_time_is_ours:
        cpus = testbed.client_cpus or float(len(split.client))
        yield less_on_the_testbed("client's CPU", REMAINING_OF_SCARCE, "client_cpus", cpus)
    if testbed.link:
        yield less_on_the_testbed("link", REMAINING, "link", testbed.link)
    if here.memory:
        memory = round(REMAINING_OF_SCARCE * here.memory)
        yield less_of("memory", REMAINING_OF_SCARCE, memory=memory)
    connections = experiment.load_of(variant).connections
    if connections >= FEWEST_CONNECTIONS:
        fewer = round(REMAINING * connections)
        load = {**here.load, "connections": fewer}
        yield less_of("connections", fewer / connections, load=load)
    for setting, now in _workers(variant, experiment, catalogue, split).items():
        other = max(now // 2, 1) if now > 1 else 2
        intervention = Intervention(resource="workers", share=other / now, setting=setting)
        yield intervention, here.with_settings({setting: other})


def _workers(
    variant: str, experiment: Experiment, catalogue: Catalogue, split: CpuSplit
) -> dict[str, int]:
    """Return the numbers of workers, by setting, where connections may wait for one."""
    connections = experiment.load_of(variant).connections
    return {
        setting.name: setting.now
        for setting in _settings_of(variant, experiment, catalogue, split)
        if setting.inner in WORKERS
        and not setting.setting.idle(setting.others)
        and isinstance(setting.now, int)
        if setting.now // 2 < connections
    }


class _VariantsSetting(NamedTuple):
    name: str
    inner: str
    """What its service calls it."""
    setting: Setting
    now: SettingValue
    others: Mapping[str, SettingValue]
    """All settings of its service."""


def _settings_of(
    variant: str, experiment: Experiment, catalogue: Catalogue, split: CpuSplit
) -> Iterator[_VariantsSetting]:
    stack = catalogue.stack(experiment.variants[variant].stack)
    site = catalogue.site(experiment.site_of(variant))
    roles = resolve_stack(stack, site, experiment.settings_of(variant), len(split.servers)).roles
    resolved = {role.name: role.settings for role in roles}
    for name, (setting, sets) in stack.with_services(site.services).exposed_settings().items():
        role, inner = sets[0]
        yield _VariantsSetting(name, inner, setting, resolved[role][inner], resolved[role])


def limits_experiment(
    variant: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    *,
    cpu_time_is_ours: bool = True,
) -> Experiment:
    """Return the experiment that finds a variant's limit; OperationError if it can't be had."""
    changes = list(
        interventions(variant, experiment, catalogue, split, cpu_time_is_ours=cpu_time_is_ours)
    )
    if not changes:
        raise OperationError(
            f"{variant}: nothing can be taken from it here. Taking CPU time takes root and control "
            "groups; a link's throughput, a memory limit or the setting `workers` would have to "
            "be set in the run"
        )
    things = ", ".join(intervention.setting or intervention.resource for intervention, _ in changes)
    variants, by_variant = {variant: experiment.variants[variant]}, dict[str, Intervention]()
    for intervention, altered in changes:
        done = f"less {intervention.resource}"
        if intervention.setting:
            done = f"{intervention.setting} = {altered.settings[intervention.setting]}"
        elif intervention.resource == "connections":
            done = "fewer connections"
        name = f"{variant}, {done}"
        variants[name], by_variant[name] = altered, intervention
    kept = experiment.measure.model_dump(include=KEPT_SETTINGS, exclude_defaults=True)
    return experiment.derive(
        f"What limits {variant}",
        f"What of {things} limits {variant}?",
        variants,
        Measure.model_validate(PRECISION | kept),
        LimitsSettings(interventions=by_variant),
    )


def advice_for(
    variant: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    evidence: AdviceEvidence,
) -> list[Advice]:
    """Return the settings that may be why a variant is slow, by its settings and a run of it.

    Where the run breaks a rule that one of them fixes, only those that do: no throughput is valid
    before.
    """
    known = list(_advice_that_fits(variant, experiment, catalogue, split, evidence))
    return [piece for piece in known if piece.fixes in evidence.broken] or known


def _advice_that_fits(
    variant: str,
    experiment: Experiment,
    catalogue: Catalogue,
    split: CpuSplit,
    evidence: AdviceEvidence,
) -> Iterator[Advice]:
    requests = experiment.requests_of(variant)
    headers = [experiment.load_of(variant).headers, *(request.headers for request in requests)]
    sent = {name.lower() for each in headers for name in each}
    for name, _, setting, now, others in _settings_of(variant, experiment, catalogue, split):
        cause, header = setting.cause, setting.needs_header
        if cause is None or setting.idle(others) or (header and header.lower() not in sent):
            continue
        if cause.where is not None and not SIGNS[cause.where](evidence):
            continue
        for better in cause.better:
            tried = _value_to_try(better, now, setting, len(split.servers))
            if tried is not None and tried != now:
                yield Advice(
                    setting=name,
                    now=now,
                    tried=tried,
                    says=cause.says,
                    vendor=cause.vendor,
                    fixes=cause.fixes if cause.fixes in evidence.broken else None,
                )


def advice_experiment(variant: str, experiment: Experiment, advice: Sequence[Advice]) -> Experiment:
    """Return the experiment that says what each piece of advice is worth to a variant.

    Where the variant breaks a rule that invalidates throughputs, it decides on the servers' CPU
    time; a search for the capacity goes by objectives, and stays one.
    """
    here = experiment.variants[variant]
    variants, tried = {variant: here}, dict[str, Advice]()
    for piece in advice:
        name = f"{variant}, {piece.setting} = {shown_value(piece.tried)}"
        variants[name], tried[name] = here.with_settings({piece.setting: piece.tried}), piece
    settings = {*KEPT_SETTINGS, "decide_on"}
    kept = experiment.measure.model_dump(include=settings, exclude_defaults=True)
    if experiment.capacity is None and any(piece.fixes for piece in advice):
        kept["decide_on"] = CPU_TIME
    return experiment.derive(
        f"What would make {variant} faster",
        f"What are other settings worth to {variant}?",
        variants,
        Measure.model_validate({"patience": 2, **kept}),
        AdviceSettings(tried=tried),
    )


def _value_to_try(
    better: SettingValue, now: SettingValue, setting: Setting, cpus: int
) -> SettingValue | None:
    """Return what a better value is in figures; None where it lies beyond the setting's range."""
    if better in FOLLOWING_CPUS:
        return in_figures(better, cpus)
    if not isinstance(better, str) or better not in FACTORS or isinstance(now, str):
        return better
    figure = now * FACTORS[better]
    whole = max(round(figure), 1) if setting.type == "whole" else figure
    return None if setting.fault(whole) else whole
